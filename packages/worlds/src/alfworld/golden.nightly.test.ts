/**
 * Compares the engine with recorded answers of the original, and runs it over all official games.
 */
import { join } from "node:path";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Env } from "@pawl/core/envs/env.js";
import { replayFile } from "@pawl/core/envs/replay.js";
import { beforeAll, describe, expect, it } from "vitest";
import { type AlfworldEnvironment, openAlfworld } from "./alfworld.js";
import { findPlan } from "./expert.js";
import {
  GAMES,
  OFFICIAL_DATA,
  OLD_GAMES,
  officialDataThere,
  TRACES,
  unpacked,
} from "./fixtures/official.js";
import { loadGame, startPlay } from "./game.js";

const title = officialDataThere ? "" : ` (skipped: no games at ${OFFICIAL_DATA})`;

describe.skipIf(!officialDataThere)(`the official games${title}`, () => {
  let data: string;
  let environment: AlfworldEnvironment;

  beforeAll(() => {
    data = unpacked(GAMES);
    environment = openAlfworld({ data });
  });

  it("answer as the original did in every recorded state", async () => {
    const result = await replayFile(environment, TRACES);
    expect(result).toEqual({ traces: 280, states: 6665, mismatches: [] });
  });

  it("keep the environment contract", async () => {
    for (const check of envChecks(environment, { tasksPerSplit: 2, steps: 12 }))
      await expect(check.run(), check.name).resolves.toBeUndefined();
  });

  it("are listed in full, by split and type", () => {
    const counts = environment.splits.map((split) => [split, environment.tasks(split).length]);
    expect(Object.fromEntries(counts)).toEqual({
      train: 3553,
      valid_seen: 140,
      valid_unseen: 134,
      valid_train: 200,
    });
    expect(environment.splits.map((split) => environment.unsolvable(split))).toEqual([0, 0, 0, 0]);
    const types = new Set(environment.tasks("train").map(({ type }) => type));
    expect([...types].sort()).toEqual([
      "look_at_obj_in_light",
      "pick_and_place_simple",
      "pick_clean_then_place_in_recep",
      "pick_cool_then_place_in_recep",
      "pick_heat_then_place_in_recep",
      "pick_two_obj_and_place",
    ]);
  });

  it("are shown to training without banner, task and help, with every place for world models", () => {
    const env = environment.create() as Env;
    const task = environment.tasks("valid_seen")[0]!;
    const raw = environment.traceWorld(task.id).start();
    const first = env.reset(task);
    expect(raw.obs.endsWith(`\n\n${first}\n\nYour task is to: ${env.goal}`)).toBe(true);
    expect(["help", ...env.admissibleActions!()].sort()).toEqual(raw.admissible);
    const context = env.initialContext!()!;
    const places = raw.admissible!.filter((command) => command.startsWith("go to "));
    for (const place of places)
      expect(context).toMatch(new RegExp(`(On the ${place.slice(6)},|The ${place.slice(6)} is )`));
    expect(context.match(/you see /g)).toHaveLength(places.length);
  });

  it("tell world models what places hold in the words that a visit shows", () => {
    const seen = { visited: 0, opened: 0 };
    for (const task of environment.tasks("valid_seen").slice(0, 30)) {
      const env = environment.create() as Env;
      env.reset(task);
      const context = env.initialContext!()!;
      const expectInContext = (shown: string): void => expect(context).toContain(shown);
      const places = env.admissibleActions!().filter((action) => action.startsWith("go to "));
      for (const place of places.map((action) => action.slice("go to ".length))) {
        const there = env.clone();
        const arrived = there.step(`go to ${place}`).observation;
        expectInContext(arrived.replace(`You arrive at ${place}. `, ""));
        seen.visited++;
        const opened = there.step(`open ${place}`).observation;
        if (!opened.startsWith("You open")) continue;
        const inside = opened.replace(/^.* is open\. /, "");
        expectInContext(`The ${place} is closed. ${inside}`);
        seen.opened++;
      }
    }
    expect(seen.visited).toBeGreaterThan(300);
    expect(seen.opened).toBeGreaterThan(100);
  });

  it("are solved by their walkthroughs", () => {
    for (const task of environment.tasks("valid_unseen")) {
      const env = environment.create() as Env;
      env.reset(task);
      let success = false;
      for (let step = 0; step < environment.stepLimit && !success; step++)
        success = env.step(environment.expert!(env)).info.success;
      expect(success, task.id).toBe(true);
    }
  });

  it("are solved by search alone, at least 95 in 100 of valid_seen", () => {
    const tasks = environment.tasks("valid_seen");
    const solved = tasks.filter((task) => {
      const play = startPlay(loadGame(join(data, "json_2.1.1", task.id, "game.tw-pddl")));
      for (const action of findPlan(play.game.world, play.state) ?? [])
        play.step(play.commandFor(action));
      return play.won;
    });
    expect(solved.length).toBeGreaterThanOrEqual(0.95 * tasks.length);
  });

  it("of version 2.1.1 work too, and are solved by search because they have no walkthrough", () => {
    const old = openAlfworld({ data: unpacked(OLD_GAMES) });
    const tasks = old.splits.flatMap((split) => old.tasks(split));
    expect(tasks).toHaveLength(6);
    for (const task of tasks) {
      const env = old.create() as Env;
      env.reset(task);
      const lines: string[] = [];
      for (let step = 0; step < old.stepLimit && !lines.includes("won"); step++) {
        const action = old.expert!(env);
        const { observation, info } = env.step(action);
        lines.push(`${action}: ${observation}`, ...(info.success ? ["won"] : []));
      }
      expect(lines.at(-1), task.id).toBe("won");
      expect(lines.some((line) => /^go to .*: You arrive at loc \d+\. /.test(line))).toBe(true);
    }
  });
});
