/** One bad world among good ones: its episode breaks, is named, and holds nobody up for long. */
import { describe, expect, it } from "vitest";
import { boundedEnv } from "../envs/bounded-env.js";
import type { Env, Environment, RemoteEnv, StepResult, Task } from "../envs/env.js";
import { DEFAULT_LIMITS, type EnvLimits, limitOptions } from "../envs/limits.js";
import { promptStyle } from "../text/prompt.js";
import type { Episode } from "./episode.js";
import type { Policy } from "./policy.js";
import { play, type RolloutOptions, rollout } from "./rollout.js";
import { createTally } from "./tally.js";

/** The world of the task `train/bad` is spoilt; all others are solved by two steps. */
type Spoil = (world: RemoteEnv) => Partial<RemoteEnv>;

function goodWorld(): RemoteEnv {
  let steps = 0;
  return {
    goal: "go on",
    taskType: "steps",
    reset: async () => {
      steps = 0;
      return "start";
    },
    step: async () => {
      const success = ++steps === 2;
      return {
        observation: `step ${steps}`,
        reward: success ? 1 : 0,
        done: success,
        info: { valid: true, success },
      };
    },
    admissibleActions: () => ["on"],
    close: async () => undefined,
  };
}

const tasks: Task[] = ["train/0", "train/bad", "train/1", "train/2"].map((id) => ({
  id,
  split: "train",
  type: "steps",
}));

function environmentOf(spoil: Spoil, limits: EnvLimits = DEFAULT_LIMITS): Environment {
  return {
    name: "steps",
    splits: ["train"],
    stepLimit: 5,
    maxReturn: 1,
    limits,
    tasks: () => tasks,
    task: (id) => tasks.find((task) => task.id === id)!,
    create() {
      const world = goodWorld();
      let spoilt: Partial<RemoteEnv> = {};
      const of = <K extends keyof RemoteEnv>(key: K): RemoteEnv[K] =>
        (key in spoilt ? spoilt : world)[key] as RemoteEnv[K];
      return {
        get goal() {
          return of("goal");
        },
        taskType: "steps",
        reset(task, seed, signal) {
          if (task.id === "train/bad") spoilt = spoil(world);
          return of("reset")(task, seed, signal);
        },
        step: (action, signal) => of("step")(action, signal),
        admissibleActions: () => of("admissibleActions")!(),
        close: () => of("close")(),
      };
    },
  };
}

const style = promptStyle(undefined, { style: "compact" });
const policy: Policy = {
  name: "on",
  batch: 100,
  act: async (situations) => situations.map(() => ({ response: "on" })),
};
const base = { style, policy, tasks, groupSize: 1, seed: 0 };

async function playIn(
  environment: Environment,
  more: Partial<RolloutOptions> = {},
): Promise<readonly Episode[]> {
  const groups = await rollout({ ...base, environment, ...more });
  return groups.flatMap(({ episodes }) => episodes);
}

const answering =
  (change: (result: StepResult) => unknown): Spoil =>
  (world) => ({ step: async (action) => change(await world.step(action)) as StepResult });
const never = new Promise<never>(() => undefined);
const quick = limitOptions.parse({ stepSeconds: 0.4 });
const megabytes = "x".repeat(10_000_000);

describe("a bad world breaks its own episode, with its reason", () => {
  it.each<[string, Spoil, RegExp, EnvLimits?]>([
    [
      "a reward of NaN",
      answering((r) => ({ ...r, reward: Number.NaN })),
      /^the reward is NaN, expected a finite number$/,
    ],
    [
      "a reward in words",
      answering((r) => ({ ...r, reward: "1" })),
      /^the reward is "1" \(a string\)/,
    ],
    [
      "no info",
      answering(({ info: _, ...r }) => r),
      /^info is undefined, expected \{ valid, success \}$/,
    ],
    [
      "half an info",
      answering((r) => ({ ...r, info: { valid: true } })),
      /success: undefined; expected true or false/,
    ],
    [
      "an odd score",
      answering((r) => ({ ...r, info: { ...r.info, score: Number.NaN } })),
      /^info\.score is NaN/,
    ],
    ["no done", answering(({ done: _, ...r }) => r), /^done is undefined, expected true or false$/],
    ["nothing", answering(() => undefined), /^step gave undefined, expected/],
    [
      "an image",
      answering((r) => ({ ...r, observation: new Uint8Array(9) })),
      /^the observation is bytes, expected text: describe images/,
    ],
    [
      "parts",
      answering((r) => ({ ...r, observation: [{ type: "image" }] })),
      /^the observation is a list, expected text/,
    ],
    [
      "10 MB",
      answering((r) => ({ ...r, observation: megabytes })),
      /^the observation has 10,000,000 characters, more than env\.limits\.observation, 100,000$/,
      limitOptions.parse({ tooLong: "break" }),
    ],
    [
      "no first observation",
      () => ({ reset: async () => undefined as unknown as string }),
      /^the first observation is undefined/,
    ],
    [
      "a goal that is no text",
      () => ({ goal: 7 as unknown as string }),
      /^the goal is 7, expected text/,
    ],
    [
      "a reset that fails",
      () => ({ reset: () => Promise.reject(new Error("no data")) }),
      /^no data$/,
    ],
    [
      "a step that fails",
      () => ({ step: () => Promise.reject(new Error("no luck")) }),
      /^no luck$/,
    ],
    [
      "a list that fails",
      () => ({
        admissibleActions: () => {
          throw new Error("no list");
        },
      }),
      /^no list$/,
    ],
    [
      "a list that is none",
      () => ({ admissibleActions: () => "on" as unknown as string[] }),
      /^admissibleActions gave "on" \(a string\), expected a list/,
    ],
    [
      "a list of numbers",
      () => ({ admissibleActions: () => [1] as unknown as string[] }),
      /^admissibleActions lists 1, expected texts only/,
    ],
    [
      "a step that never ends",
      () => ({ step: () => never }),
      /^a step took longer than env\.limits\.stepSeconds, 0\.4 s$/,
      quick,
    ],
    [
      "a reset that never ends",
      () => ({ reset: () => never }),
      /^reset took longer than env\.limits\.stepSeconds, 0\.4 s$/,
      quick,
    ],
    [
      "too many slow steps",
      (world) => ({
        step: async () => {
          const r = await new Promise<StepResult>((done) =>
            setTimeout(async () => done(await world.step("on")), 250),
          );
          return { ...r, done: false };
        },
      }),
      /^the world took longer than env\.limits\.episodeSeconds, 0\.4 s, for the episode$/,
      limitOptions.parse({ episodeSeconds: 0.4 }),
    ],
  ])("%s", async (_, spoil, reason, limits) => {
    const episodes = await playIn(environmentOf(spoil, limits));
    expect(episodes.map(({ stop }) => stop)).toEqual(["done", "broken", "done", "done"]);
    expect(episodes[1]!.error).toMatch(reason);
    const tally = createTally();
    for (const episode of episodes) tally.add(episode);
    expect([...tally.broken]).toEqual([[episodes[1]!.error, 1]]);
  });

  it("breaks it when an answer at once comes too late, too", async () => {
    const slow = (): Env => ({
      goal: "wait",
      taskType: "steps",
      reset: () => "start",
      step() {
        const until = performance.now() + 500;
        while (performance.now() < until);
        return {
          observation: "at last",
          reward: 1,
          done: true,
          info: { valid: true, success: true },
        };
      },
      clone: slow,
    });
    const environment = { ...environmentOf(() => ({}), quick), create: slow };
    await expect(playIn(environment)).rejects.toThrow(/a step took longer than/);
  });

  it("breaks it when its tokens cannot be made", async () => {
    const failing: Policy = {
      ...policy,
      act: async (situations) =>
        situations.map(({ task }) => ({
          response: "on",
          encode: () => {
            if (task.id === "train/bad") throw new Error("no token for this");
            return { ids: [], spans: [] };
          },
        })),
    };
    const episodes = await playIn(
      environmentOf(() => ({})),
      { policy: failing },
    );
    expect(episodes.map(({ error }) => error)).toEqual([
      undefined,
      "no token for this",
      undefined,
      undefined,
    ]);
  });
});

describe("what does not break an episode", () => {
  it("cuts an observation that is too long, with a notice, between whole characters", async () => {
    const long = `${"x".repeat(99)}😀${megabytes}`;
    const limits = limitOptions.parse({ observation: 100 });
    const episodes = await playIn(
      environmentOf(
        answering((r) => ({ ...r, observation: long })),
        limits,
      ),
    );
    expect(episodes[1]!.stop).toBe("done");
    expect(episodes[1]!.steps[0]!.observation).toBe(
      `${"x".repeat(99)}\n[cut here: it had 10,000,101 characters]`,
    );
  });

  it("reports a world that cannot be closed, or never is, and goes on", async () => {
    for (const [close, message] of [
      [() => Promise.reject(new Error("stuck door")), "stuck door"],
      [
        () => {
          throw new Error("no door");
        },
        "no door",
      ],
    ] as const) {
      const problems: string[] = [];
      const onProblem = (problem: string): void => void problems.push(problem);
      const episodes = await playIn(
        environmentOf(() => ({ close })),
        { onProblem },
      );
      expect(episodes.every(({ stop }) => stop === "done")).toBe(true);
      expect(problems).toEqual([`a world of task train/bad did not close: ${message}`]);
    }
  });

  it("tells a world that nobody waits for its answer any more", async () => {
    let reason: unknown;
    const spoil: Spoil = () => ({
      step: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal!.addEventListener("abort", () => {
            reason = signal!.reason;
            reject(new Error("stopped"));
          });
        }),
    });
    await playIn(environmentOf(spoil, quick));
    expect(String(reason)).toContain("took longer than");
  });
});

describe("an interrupt", () => {
  it("reaches a rollout whose world hangs, with finished episodes reported", async () => {
    const controller = new AbortController();
    const seen: Episode[] = [];
    const playing = play({
      ...base,
      policy: { ...policy, batch: 1 },
      concurrency: 4,
      environment: environmentOf(() => ({ step: () => never })),
      signal: controller.signal,
      onEpisode(episode) {
        seen.push(episode);
        if (seen.length === 3) controller.abort(new Error("stopped by hand"));
      },
    });
    await expect(playing).rejects.toThrow("stopped by hand");
    expect(seen.map(({ stop }) => stop)).toEqual(["done", "done", "done"]);
  });

  it("of a world that hangs at its start is no broken episode", async () => {
    const controller = new AbortController();
    const seen: Episode[] = [];
    const playing = play({
      ...base,
      concurrency: 4,
      environment: environmentOf(() => ({
        reset() {
          setImmediate(() => controller.abort(new Error("stopped by hand")));
          return never;
        },
      })),
      signal: controller.signal,
      onEpisode: (episode) => void seen.push(episode),
    });
    await expect(playing).rejects.toThrow("stopped by hand");
    expect(seen.filter(({ stop }) => stop === "broken")).toEqual([]);
  });

  it("leaves no failure behind that nobody hears of, if it came before the question", async () => {
    const unheard: unknown[] = [];
    const hear = (error: unknown): void => void unheard.push(error);
    process.on("unhandledRejection", hear);
    try {
      const step: RemoteEnv["step"] = (_, stop) =>
        new Promise((_, reject) => {
          stop!.addEventListener("abort", () => reject(new Error("the world was ended")));
        });
      const signal = AbortSignal.abort(new Error("interrupted"));
      const world = boundedEnv({ ...goodWorld(), step }, DEFAULT_LIMITS, signal);
      await expect(world.step("on")).rejects.toThrow("interrupted");
      await new Promise((done) => setImmediate(done));
      expect(unheard).toEqual([]);
    } finally {
      process.off("unhandledRejection", hear);
    }
  });
});
