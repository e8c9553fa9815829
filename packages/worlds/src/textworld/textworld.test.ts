import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { isWhole } from "@pawl/core/dose-testing.js";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Env } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { afterAll, describe, expect, it } from "vitest";
import { RECORDED, recordedGames, recordedThere, TRACES } from "./fixtures/recorded.js";
import { loadGame } from "./game.js";
import { startPlay } from "./play.js";
import { replayTextworld } from "./replay.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-textworld-"));
afterAll(() => rmSync(folder, { recursive: true }));

const title = recordedThere ? "" : ` (skipped: no games at ${RECORDED})`;

describe.skipIf(!recordedThere)(`recorded games${title}`, () => {
  const data = recordedThere ? join(recordedGames(), "games") : "";
  const game = (name: string): string => join(data, `${name}.z8`);
  const open = (options: object = {}) => openEnvironment({ name: "textworld", data, ...options });

  it("answer as the original did: one trace of each kind and style", () => {
    // The others are replayed by the checks before a merge: they take a minute.
    const lines = gunzipSync(readFileSync(TRACES)).toString("utf8").trim().split("\n");
    const records = lines.map(
      (line) => JSON.parse(line) as { game: string; kind: string; style: string },
    );
    const some = records.filter(({ game, kind, style }, index) => {
      const same = (one: { kind: string; style: string }) =>
        one.kind === kind && one.style === style;
      const first = (one: { game: string; kind: string; style: string }) =>
        one.game.includes("-l5-") && (!isWhole || one.game === game) && same(one);
      return game.includes("-l5-") && records.findIndex(first) === index;
    });
    expect(new Set(some.map(({ kind, style }) => `${kind} ${style}`)).size).toBe(5);
    const { mismatches } = replayTextworld(some, (name) => loadGame(join(data, name)));
    expect(mismatches).toEqual([]);
    const damaged = structuredClone(some[0]!) as unknown as { steps: { obs: string }[] };
    damaged.steps[1]!.obs += "!";
    const found = replayTextworld([damaged], (name) => loadGame(join(data, name))).mismatches;
    expect(found.map(({ where }) => where)).toEqual([expect.stringMatching(/step 1: obs after/)]);
  });

  it("keep the environment contract", async () => {
    const one = join(folder, "one");
    for (const split of ["train", "test"]) {
      mkdirSync(join(one, split), { recursive: true });
      for (const type of ["z8", "json"])
        copyFileSync(
          join(data, `tw-treasure_hunter-l1-301.${type}`),
          join(one, split, `tw-1.${type}`),
        );
    }
    const environment = openEnvironment({ name: "textworld", data: one });
    expect(environment.tasks("test")).toEqual([
      { id: "test/tw-1", split: "test", type: "tw-treasure_hunter" },
    ]);
    for (const check of envChecks(environment, { steps: 6 }))
      await expect(check.run(), check.name).resolves.toBeUndefined();
  });

  it("are split and typed, and filtered by type", () => {
    const environment = open();
    expect(environment.tasks("train").length + environment.tasks("test").length).toBe(32);
    expect(environment.tasks("train")[0]!.id).toBe("train/tw-coin_collector-l1-201");
    expect(environment.maxReturn).toBe(11);
    const simple = open({ types: ["tw-simple"], reward: "success" });
    expect(new Set(simple.tasks("train").map(({ type }) => type))).toEqual(new Set(["tw-simple"]));
    expect(simple.maxReturn).toBe(1);
    expect(() => open({ types: ["tw-nothing"] }).tasks("train")).toThrow(
      /it has tw-coin_collector/,
    );
  });

  it("reward points, end with the game, and refuse what would leave it", () => {
    const environment = open({ style: "plain", opening: "whole", context: "facts" });
    const env = environment.create() as Env;
    const task = environment.task("train/tw-coin_collector-l1-201");
    expect(env.reset(task)).toMatch(/\$\$[\s\S]*-= Restroom =-[\s\S]*\n> {128}-= Restroom =-0\/1$/);
    expect(env.initialContext!()).toBe("at(P, restroom). at(coin, restroom).");
    expect(env.goal).toMatch(/pick-up the coin/);
    expect(env.step("quit")).toMatchObject({ reward: 0, done: false, info: { valid: false } });
    expect(env.step("frobnicate")).toMatchObject({ info: { valid: false } });
    const copy = env.clone();
    const won = env.step("take coin");
    expect(won).toMatchObject({
      reward: 1,
      done: true,
      info: { valid: true, success: true, score: 1 },
    });
    expect(env.admissibleActions!()).toEqual([]);
    expect(copy.admissibleActions!()).toContain("take coin");
    expect(copy.step("take coin")).toEqual(won);
    expect(env.irreversible!("eat coin")).toBe(true);
  });

  it("name a world that is missing, damaged or of another kind", () => {
    const broken = join(folder, "broken");
    mkdirSync(broken);
    const story = join(broken, "tw-x.z8");
    copyFileSync(game("tw-coin_collector-l1-201"), story);
    expect(() => loadGame(story)).toThrow(/expected .*tw-x\.json beside it/);
    writeFileSync(join(broken, "tw-x.json"), '{"version": 1');
    expect(() => loadGame(story)).toThrow(/tw-x\.json: not JSON/);
    writeFileSync(join(broken, "tw-x.json"), '{"version": 1}');
    expect(() => loadGame(story)).toThrow(/not a game of TextWorld 1\.x: world/);
    copyFileSync(join(data, "tw-coin_collector-l1-201.json"), join(broken, "tw-x.json"));
    writeFileSync(story, readFileSync(story).subarray(0, 100_000));
    expect(() => loadGame(story)).toThrow(/the file is cut/);
  });

  it("ask in the middle of a turn, and take the next command as the answer", () => {
    const play = startPlay(loadGame(game("tw-simple-balanced-detailed-2")), {
      style: "tw",
      tracked: false,
    });
    const asked = play.step(play.start, "open");
    expect(asked.observation).toMatch(/What do you want to open/);
  });
});

it("says how to get games where there are none", () => {
  const empty = mkdtempSync(join(folder, "empty-"));
  expect(() => openEnvironment({ name: "textworld", data: empty })).toThrow(
    /no \.z8 files in .*pawl env make textworld/,
  );
  expect(() => openEnvironment({ name: "textworld", data: join(folder, "nowhere") })).toThrow(
    /nowhere cannot be read/,
  );
});

it("a game's largest return is its own, and the expert gets it", () => {
  const environment = openEnvironment({ name: "textworld", data: "made-up", reward: "score" });
  const env = environment.create() as Env;
  const largest = new Set<number>();
  for (const task of environment.tasks("train").slice(0, 12)) {
    env.reset(task);
    const most = env.maxReturn!()!;
    let total = 0;
    for (let step = 0, done = false; !done && step < environment.stepLimit; step++) {
      const result = env.step(environment.expert!(env));
      total += result.reward;
      done = result.done;
    }
    expect(total, task.id).toBe(most);
    largest.add(most);
  }
  expect(largest.size).toBeGreaterThan(1);
  expect(Math.max(...largest)).toBeLessThanOrEqual(environment.maxReturn);
  const simple = openEnvironment({ name: "textworld", data: "made-up", reward: "success" });
  const other = simple.create() as Env;
  other.reset(simple.tasks("train")[0]!);
  expect(other.maxReturn!()).toBeUndefined();
});
