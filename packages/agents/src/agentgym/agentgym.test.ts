import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EnvError, type RemoteEnv } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { afterEach, describe, expect, it } from "vitest";
import { dialects } from "./dialects.js";
import { type StandIn, servers, standIn } from "./testing.js";

let server: StandIn | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

const open = (name: string, more: object = {}) =>
  openEnvironment({ name: "agentgym", url: `${server!.url}/`, server: name, ...more });

/** Plays a task: what was seen, and the rewards. */
async function played(name: string, actions: readonly string[]) {
  const environment = open(name, { train: "7,30-31" });
  expect(environment.tasks("train").map(({ id }) => id)).toEqual([
    "train/7",
    "train/30",
    "train/31",
  ]);
  const env = environment.create() as RemoteEnv;
  const first = await env.reset(environment.task("train/30"));
  const { goal } = env;
  const results = [];
  for (const action of actions) results.push(await env.step(action));
  await env.close();
  return { first, goal, results, rewards: results.map(({ reward }) => reward) };
}

describe("AgentGym's servers, by a stand-in", () => {
  it("has a dialect for each", () => {
    expect(Object.keys(dialects)).toEqual(servers);
  });

  it.each(servers)("plays %s: the rewards add up to that of the last step", async (name) => {
    server = await standIn(name);
    const { first, goal, results, rewards } = await played(name, ["good", "bad", "good", "good"]);
    expect(first).toContain("task 30, step 0");
    expect(goal).toMatch(name === "maze" || name === "wordle" ? /task 30/ : /good|task 30/i);
    expect(results.map(({ observation }) => observation)).toEqual(
      [1, 2, 3, 4].map((step) => `task 30, step ${step}`),
    );
    expect(results.map(({ done }) => done)).toEqual([false, false, false, true]);
    const total = rewards.reduce((sum, reward) => sum + reward, 0);
    expect(total).toBeCloseTo(name === "maze" ? 0 : 1, 10);
    expect(results.at(-1)!.info.success).toBe(name !== "maze");
    expect(results[2]!.info.success).toBe(false);
  });

  it("takes the score where that is the reward, out of 100 in SciWorld", async () => {
    server = await standIn("sciworld");
    const { rewards, results } = await played("sciworld", ["good", "bad", "good"]);
    expect(rewards.map((reward) => Number(reward.toFixed(2)))).toEqual([0.33, 0, 0.33]);
    expect(results.at(-1)!.info.score).toBeCloseTo(0.66);
  });

  it("lists ALFWorld's actions, sorted and once, and says which were none", async () => {
    server = await standIn("alfworld");
    const environment = open("alfworld");
    const env = environment.create() as RemoteEnv;
    await env.reset(environment.tasks("train")[0]!);
    expect(env.goal).toBe("be good.");
    expect(env.admissibleActions!()).toEqual(["bad", "good"]);
    expect((await env.step("fly")).info.valid).toBe(false);
    expect((await env.step("good")).info.valid).toBe(true);
    expect(env.admissibleActions!()).toEqual(["bad", "good"]);
    await env.close();
  });

  it("ends webarena's episodes also when they are cut short", async () => {
    server = await standIn("webarena");
    const { results } = await played("webarena", ["bad", "bad", "bad", "bad", "bad"]);
    expect(results.at(-1)).toMatchObject({ done: true, info: { success: false } });
  });

  it("gives worlds back, or uses them again where that cannot be done", async () => {
    for (const [name, left, made] of [
      ["alfworld", 1, 1],
      ["textcraft", 0, 3],
    ] as const) {
      server = await standIn(name);
      const environment = open(name);
      for (let episode = 0; episode < 3; episode++) {
        const env = environment.create() as RemoteEnv;
        await env.reset(environment.tasks("train")[episode]!);
        await env.step("good");
        await env.close();
      }
      expect([server.open(), server.made()]).toEqual([left, made]);
      await server.stop();
    }
  });

  it("can be played by a rollout", async () => {
    server = await standIn("alfworld");
    const folder = mkdtempSync(join(tmpdir(), "pawl-agentgym-"));
    const { code, stdout } = await runCli([
      ...["rollout", "--env", "agentgym", "--env.url", server.url, "--env.server", "alfworld"],
      ...["--policy", "random", "--groups", "3", "--group-size", "2", "--out", join(folder, "run")],
    ]);
    rmSync(folder, { recursive: true });
    expect([code, stdout]).toEqual([0, expect.stringContaining("alfworld")]);
    // As many worlds as episodes at once.
    expect(server.made()).toBeLessThanOrEqual(4);
  });
});

describe("an AgentGym server that fails", () => {
  /** A step at a server whose second call to `path` fails. */
  const stepAt = async (name: string, path: string, status: number, answer: unknown) => {
    server = await standIn(name, (at) => (at === path ? [status, answer] : undefined));
    const environment = open(name);
    const env = environment.create() as RemoteEnv;
    try {
      await env.reset(environment.tasks("train")[0]!);
      return await env.step("good");
    } finally {
      await env.close();
      await server.stop();
    }
  };

  it("breaks the episode: errors with status 200, nothing seen, wrong numbers", async () => {
    const faults: [string, number, unknown, RegExp][] = [
      ["/step", 200, { error: "the world is gone" }, /the world is gone/],
      ["/step", 200, { reward: 0, done: false }, /no observation/],
      ["/step", 200, { observation: null, reward: 0, done: false }, /no observation/],
      ["/step", 200, { observation: "", reward: null, done: false }, /reward is null/],
      ["/step", 200, { observation: "", reward: 0 }, /done is undefined/],
      ["/step", 200, [], /expected an object/],
      ["/step", 500, "oops", /status 500/],
      ["/reset", 200, { error: "no such task" }, /no such task/],
      ["/reset", 200, "text", /no observation/],
      ["/create", 200, 5, /expected an id in "id".*another server/],
      ["/create", 404, {}, /status 404/],
    ];
    for (const [path, status, answer, reason] of faults) {
      const step = stepAt("textcraft", path, status, answer);
      await expect(step).rejects.toThrow(EnvError);
      await expect(step).rejects.toThrow(reason);
    }
  });

  it("does not take a time-out of webarena's for a page", async () => {
    server = await standIn("webarena");
    const environment = open("webarena", { train: "99" });
    const env = environment.create() as RemoteEnv;
    await expect(env.reset(environment.tasks("train")[0]!)).rejects.toThrow("TimeoutError");
    await env.close();
  });

  it("is asked again while it is busy, but never sent a step twice that may have arrived", async () => {
    let [busy, steps] = [3, 0];
    server = await standIn("webshop", (path) => {
      if (path !== "/step") return undefined;
      steps++;
      return busy-- > 0 ? [503, {}] : undefined;
    });
    const environment = open("webshop");
    const env = environment.create() as RemoteEnv;
    await env.reset(environment.tasks("train")[0]!);
    expect(env.goal).toBe("be good");
    expect(await env.step("good")).toMatchObject({ observation: "task 0, step 1" });
    expect(steps).toBe(4);
    busy = -1;
    const stuck = new AbortController();
    stuck.abort(new Error("too late"));
    await expect(env.step("good", stuck.signal)).rejects.toThrow("too late");
    await expect(env.step("good")).rejects.toThrow("reset");
    await env.close();
  });

  it("is named if it is not there, and so are wrong settings", async () => {
    server = await standIn("maze");
    const environment = open("maze");
    await server.stop();
    const env = environment.create() as RemoteEnv;
    await expect(env.reset(environment.tasks("train")[0]!)).rejects.toThrow(
      /POST http:\/\/127\.0\.0\.1:\d+\/maze\/create failed: ECONNREFUSED/,
    );
    expect(() => open("chess")).toThrow("server");
    expect(() => open("maze", { train: "5-" })).toThrow("0-99,120");
    expect(() => open("maze", { train: "9-3" }).tasks("train")).toThrow("in order");
  });
});
