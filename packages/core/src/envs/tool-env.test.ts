import { describe, expect, it } from "vitest";
import { startEpisode } from "../rollout/episode-run.js";
import { expertPolicy } from "../rollout/policies/config.js";
import { randomPolicy } from "../rollout/policies/random.js";
import type { Policy } from "../rollout/policy.js";
import { rollout } from "../rollout/rollout.js";
import { promptStyle } from "../text/prompt.js";
import type { Tool } from "../text/tool.js";
import { envChecks } from "./conformance.js";
import type { Env, Environment } from "./env.js";
import { guessKind, guessTool } from "./tool-env-testing.js";

const open = (tools?: readonly Tool[]): Environment => guessKind(tools).open({});

const started = (environment: Environment): Env => {
  const env = environment.create() as Env;
  env.reset(environment.task("train/0"));
  return env;
};

describe("an environment of tool calls", () => {
  it("keeps the contract of text environments", async () => {
    for (const check of envChecks(open())) await check.run();
  });

  it("is stepped with calls that fit the schema, and says what is wrong with others", () => {
    const env = started(open());
    const step = (action: string) => env.step(action);
    expect(step('{"tool":"guess","arguments":{"number":5}}').observation).toBe("guess: lower");
    for (const [action, problem] of [
      ["guess 5", /Expected a tool call/],
      ['{"tool":"gues","arguments":{}}', /no tool gues\. Did you mean "?guess/],
      ['{"tool":"guess","arguments":{"number":9}}', /arguments of guess do not fit: number: /],
      ['{"tool":"guess","arguments":{}}', /do not fit: number: /],
    ] as const) {
      const { observation, info, reward, done } = step(action);
      expect(observation).toMatch(problem);
      expect([info.valid, reward, done]).toEqual([false, 0, false]);
    }
  });

  it.each([
    [[], /one tool or more/],
    [[guessTool, guessTool], /two tools named guess/],
    [[{ ...guessTool, name: "has blanks" }], /a tool's name/],
    [[{ ...guessTool, description: 3 }], /expected a description/],
    [[{ ...guessTool, parameters: { type: "objekt" } }], /parameters of guess are no JSON Schema/],
  ])("refuses tools like %j", (tools, message) => {
    expect(() => started(open(tools as unknown as Tool[])).tools!()).toThrow(message);
  });
});

describe("an episode of tool calls", () => {
  const play = async (policy: Policy, style: "full" | "chat" | "compact") => {
    const environment = open();
    const [group] = await rollout({
      environment,
      policy,
      style: promptStyle(environment.prompt, { style }),
      tasks: [environment.task("train/0")],
      groupSize: 1,
      seed: 0,
    });
    return group!.episodes[0]!;
  };

  it.each(["full", "chat", "compact"] as const)(
    "is solved by the expert and played at random in the style %s",
    async (style) => {
      const solved = await play(expertPolicy(open().expert!), style);
      expect(solved).toMatchObject({ success: true, stop: "done" });
      expect(solved.steps[0]!.action).toBe('{"tool":"guess","arguments":{"number":1}}');
      const random = await play(randomPolicy(), style);
      expect(random.steps.every(({ valid }) => valid)).toBe(true);
    },
  );

  it("answers a malformed call with what is wrong, and goes on", async () => {
    const said = ["three", '{"name":"guess","arguments":{"number":3}}'];
    const policy: Policy = {
      name: "said",
      batch: 1,
      act: async ([situation]) => [
        { response: said[situation!.index] ?? '{"name":"guess","arguments":{"number":1}}' },
      ],
    };
    const { steps, success } = await play(policy, "chat");
    expect(steps.map(({ wellFormed, valid }) => [wellFormed, valid])).toEqual([
      [false, false],
      [true, true],
      [true, true],
    ]);
    expect(steps[0]!.observation).toMatch(/The call is not JSON/);
    expect(success).toBe(true);
    const last = steps.at(-1)!.prompt;
    expect(last.filter(({ role }) => role === "tool").map(({ call }) => call)).toEqual([
      undefined,
      "call00002",
    ]);
  });

  it("breaks if the tools are none, or the world shows something else than text", async () => {
    const breaks = async (environment: Environment) => {
      const { episode } = await startEpisode({
        environment,
        style: promptStyle(),
        task: environment.task("train/0"),
        ...{ group: 0, attempt: 0, seed: 0, stepLimit: 1, invalidActionLimit: 1, policy: "none" },
      });
      return episode?.error;
    };
    expect(await breaks(open([]))).toMatch(/tools\(\): expected a list/);
    const pictures = open();
    const create = () => {
      const env = pictures.create() as Env;
      return Object.assign(env, { reset: () => [{ type: "image" }] as unknown as string });
    };
    expect(await breaks({ ...pictures, create })).toMatch(/expected text/);
  });
});
