import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import { envChecks } from "@pawl/core/envs/conformance.js";
import { EnvError } from "@pawl/core/envs/env.js";
import { isAlive } from "@pawl/core/processes/process-alive.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { afterAll, describe, expect, it } from "vitest";
import { installed, RECORDINGS } from "./fixtures/installed.js";
import { isExact } from "./replay.js";
import { type ScienceEnv, scoreOf } from "./science-env.js";
import { openScienceworld, scienceworldOptions } from "./scienceworld.js";

const missing = "reason" in installed;

const open = (options: Parameters<typeof scienceworldOptions.parse>[0] = {}) =>
  openScienceworld(scienceworldOptions.parse(options));

describe("the score", () => {
  it("is rounded half to even, as in Python", () => {
    expect([0.005, 0.015, 0.025, 0.375, 0.833, 1, -1].map(scoreOf)).toEqual([
      0, 2, 2, 38, 83, 100, -100,
    ]);
  });
});

describe("versions", () => {
  it.each([
    ["1.2.3", false],
    ["1.3.0", true],
    ["1.10.0", true],
    ["2.0", true],
    ["unknown", false],
  ])("%s: exact %s", (version, exact) => expect(isExact(version)).toBe(exact));
});

describe("options", () => {
  it.each([
    [{ jar: "/nowhere/scienceworld.jar" }, /option jar.*cannot be read/],
    [{ types: ["boyl"] }, /no tasks of type "boyl".*Did you mean "?boil/s],
    [{ simplifications: ["noElectricalAction"] }, /power-component cannot be done with/],
    [{ ids: "/nowhere/ids.json" }, /option ids.*cannot be read/],
  ])("%j is refused", (options, reason) => {
    if (missing && !("jar" in options)) return;
    expect(() => open(options)).toThrow(reason);
  });
});

describe.skipIf(missing)("ScienceWorld", { timeout: 300_000 }, () => {
  const environment = missing
    ? undefined!
    : open({ types: ["lifespan-longest-lived"], processes: 3 });
  const style = promptStyle(undefined, { style: "full" });
  const task = missing ? undefined! : environment.tasks("test")[0]!;
  afterAll(() => environment?.endIdle());

  for (const check of missing
    ? []
    : envChecks({ ...environment, splits: ["test"] }, { tasksPerSplit: 1, steps: 4 }))
    it(check.name, () => check.run());

  it("lists valid actions, and context and goals, when asked to", async () => {
    const rich = open({ types: ["find-plant"], validActions: true, context: true });
    const env = rich.create();
    const first = await env.reset(rich.tasks("test")[0]!);
    expect(first).toMatch(/^This room is called/);
    expect(env.goal).toMatch(/^Your task is to find a\(n\) plant/);
    expect(env.admissibleActions!()).toContain("look around");
    const context = env.initialContext!()!;
    expect(context).toMatch(/^Goal Progress:\n.*\n\nPossible Actions:\n - activate OBJ\n/s);
    expect(
      context.match(/^This room is called the|^This outside location is called the/gm),
    ).toHaveLength(10);
    expect(context.match(/^Possible Objects: agent, /gm)).toHaveLength(10);
    expect(await env.goalProgress()).toContain("Sequential Subgoals");
    await env.close();
    rich.endIdle();
    const plain = environment.create();
    expect([plain.admissibleActions, plain.initialContext]).toEqual([undefined, undefined]);
  });

  it("rewards no action for points that a task gives at its start", async () => {
    // With all doors open, the first look reaches a subgoal of finding.
    const easy = open({ types: ["find-plant"], simplifications: ["easy"] });
    const env = easy.create();
    await env.reset(easy.tasks("test")[0]!);
    const { reward, info } = await env.step("no such action");
    expect([reward, info.valid]).toEqual([0, false]);
    expect(info.score).toBeGreaterThan(0);
    await env.close();
    easy.endIdle();
  });

  it("breaks only the episode whose process is killed", async () => {
    let kills = 0;
    const expert = expertPolicy(environment.expert!);
    const groups = await rollout({
      environment,
      style,
      tasks: environment.tasks("test").slice(0, 2),
      groupSize: 1,
      seed: 0,
      concurrency: 2,
      policy: {
        ...expert,
        act(situations, signal) {
          for (const { env, group } of situations)
            if (group === 0 && kills++ === 0) process.kill((env as ScienceEnv).pid, "SIGKILL");
          return expert.act(situations, signal);
        },
      },
    });
    const [broken, whole] = groups.map(({ episodes }) => episodes[0]!);
    expect([broken!.stop, whole!.stop]).toEqual(["broken", "done"]);
    expect(broken!.error).toMatch(/process (ended by SIGKILL|is gone)/);
    expect(whole!.success).toBe(true);
    // And the next episode gets a process that lives.
    const env = environment.create();
    expect(await env.reset(task)).not.toBe("");
    await env.close();
  });

  it("ends with a fatal mistake, which is a failure and no fault of the world", async () => {
    const env = environment.create();
    await env.reset(task);
    const { done, reward, info } = await env.step("focus on agent");
    expect({ done, reward, ...info }).toEqual({
      ...{ done: true, reward: -1, valid: true, success: false, score: 0 },
    });
    await env.close();
  });

  it("ends a process that takes too long", async () => {
    const hasty = open({ types: ["boil"], timeout: 0.001 });
    await expect(hasty.create().reset(hasty.tasks("test")[0]!)).rejects.toThrow(EnvError);
  });

  it.each(["SIGKILL", "SIGINT"] as const)("leaves no process behind after %s", async (signal) => {
    const module = pathToFileURL(
      join(process.cwd(), "dist/packages/worlds/src/scienceworld/scienceworld.js"),
    );
    const script = `
      const { openScienceworld, scienceworldOptions } = await import(${JSON.stringify(module.href)});
      const environment = openScienceworld(scienceworldOptions.parse({}));
      const env = environment.create();
      await env.reset(environment.tasks("test")[0]);
      console.log(env.pid);
      setInterval(() => 0, 1e6);`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const pid = await new Promise<number>((resolve) =>
      parent.stdout.once("data", (data: Buffer) => resolve(Number(data))),
    );
    expect(isAlive(pid)).toBe(true);
    parent.kill(signal);
    while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  it.skipIf(!existsSync(RECORDINGS))("repeats recorded episodes", async () => {
    const lines = gunzipSync(readFileSync(join(RECORDINGS, "golden-1.3.0.jsonl.gz")))
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { task: string; steps: { obs: string }[] })
      .filter(({ steps }) => steps.length < 12);
    const { traces, mismatches, notes } = await environment.replayRecords!(lines, []);
    expect(traces).toBeGreaterThan(2);
    expect(mismatches).toEqual([]);
    expect(notes![0]).toContain(environment.jar.version);
    const [wrong] = lines.filter(({ task }) => task.startsWith("find"));
    wrong!.steps[1]!.obs = "Something else.";
    expect((await environment.replayRecords!([wrong], [])).mismatches).toHaveLength(1);
  });
});
