import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRandom } from "../../random.js";
import { envChecks } from "../conformance.js";
import { type Env, EnvError } from "../env.js";
import { type AlfworldEnvironment, openAlfworld } from "./alfworld.js";
import { shedGame, shedGrammar, shedProblem, writeGame } from "./fixtures/shed.js";

const WALKTHROUGH = ["walk to crate 2", "open crate 2", "lift can 1 from crate 2"];
const PLAIN = "train/water_all-Fern-1/plain";
const WALKED = "train/water_all-Fern-1/walked";
const HELPFUL = "train/water_all-Fern-1/helpful";
const EASY = "train/water_all-Fern-1/easy";
const HOPELESS = "train/water_all-Fern-1/hopeless";

let data: string;
let environment: AlfworldEnvironment;

beforeAll(() => {
  data = mkdtempSync(join(tmpdir(), "pawl-alfworld-"));
  writeGame(data, PLAIN, shedGame());
  writeGame(data, WALKED, shedGame({ walkthrough: WALKTHROUGH }));
  const grammar = shedGrammar.replace('template :: "switch"', 'template :: "help"');
  writeGame(data, HELPFUL, shedGame({ grammar }));
  const objectsAndFacts = shedProblem.slice(0, shedProblem.indexOf("(:goal"));
  writeGame(data, EASY, shedGame({ pddl_problem: `${objectsAndFacts}(:goal (and)))` }));
  const hopeless = `${objectsAndFacts}(:goal (opened anna)))`;
  writeGame(data, HOPELESS, shedGame({ pddl_problem: hopeless }));
  environment = openAlfworld({ data });
});

afterAll(() => rmSync(data, { recursive: true }));

function start(id: string): Env {
  const env = environment.create() as Env;
  env.reset(environment.task(id));
  return env;
}

/** Lets the expert finish the game, and returns its actions. */
function follow(env: Env, limit = environment.stepLimit): readonly string[] {
  const actions: string[] = [];
  for (let done = false; !done && actions.length < limit; ) {
    const action = environment.expert!(env);
    actions.push(action);
    const result = env.step(action);
    expect(result.info.valid, action).toBe(true);
    ({ done } = result);
  }
  return actions;
}

describe("the training view", () => {
  it("drops the banner and separates the task", () => {
    const env = environment.create() as Env;
    expect(env.reset(environment.task(PLAIN))).toBe("There is a crate 2 ahead.");
    expect(env.goal).toBe("shut the watered ferns in a crate.");
    expect(env.taskType).toBe("water_all");
  });

  it("hides the help command, which the raw view lists", () => {
    const env = start(HELPFUL);
    expect(env.admissibleActions!()).not.toContain("help");
    const raw = environment.traceWorld(HELPFUL).start();
    expect(raw.admissible).toContain("help");
    expect(raw.obs).toMatch(/^\*\*\* SHED \*\*\*\n\n.*\n\nBefore dark: /);
  });

  it("tells the world model what every place holds at the start", () => {
    const env = start(PLAIN);
    const context =
      "The crate 2 is closed. In it, you see a can 1. The crate 1 is open. In it, you see nothing. On the table 1, you see a fern 2, and a fern 1.";
    expect(env.initialContext!()).toBe(context);
    env.step("lift fern 1 from table 1");
    expect(env.initialContext!()).toBe(context);
  });

  it("rewards the goal once and ends there", () => {
    const env = start(PLAIN);
    expect(env.step("fly")).toEqual({
      observation: "Nothing happens.",
      reward: 0,
      done: false,
      info: { valid: false, success: false, score: 0 },
    });
    const actions = follow(env);
    const again = start(PLAIN);
    const results = actions.map((action) => again.step(action));
    expect(results.at(-1)).toMatchObject({
      reward: 10,
      done: true,
      info: { success: true, score: 1 },
    });
    expect(results.slice(0, -1).every(({ reward, done }) => reward === 0 && !done)).toBe(true);
    expect(again.admissibleActions!()).toEqual([]);
    expect(() => again.step("switch")).toThrow("after the episode was over");
  });

  it("lets a game that starts at its goal be won by its first step", () => {
    const env = start(EASY);
    expect(env.admissibleActions!().length).toBeGreaterThan(0);
    expect(env.step("switch")).toMatchObject({ reward: 10, done: true });
    expect(() => env.clone().step("switch")).toThrow("after the episode was over");
  });

  it("requires a reset first", () => {
    const env = environment.create() as Env;
    expect(() => env.step("switch")).toThrow(EnvError);
    expect(() => env.goal).toThrow("before reset");
    expect(env.clone()).toBeDefined();
  });

  it("answers a copy like the original", () => {
    const random = createRandom(3);
    const env = start(PLAIN);
    for (let step = 0; step < 60; step++) {
      const copy = env.clone();
      const action = random.pick(env.admissibleActions!());
      const untouched = copy.clone();
      expect(copy.step(action)).toEqual(env.step(action));
      expect(copy.admissibleActions!()).toEqual(env.admissibleActions!());
      expect(untouched.admissibleActions!()).toContain(action);
      if (env.admissibleActions!().length === 0) env.reset(environment.task(PLAIN));
    }
  });
});

describe("the contract", () => {
  it("is kept", async () => {
    const solvable = join(data, "solvable");
    writeGame(solvable, PLAIN, shedGame());
    writeGame(solvable, WALKED, shedGame({ walkthrough: WALKTHROUGH }));
    const checks = envChecks(openAlfworld({ data: solvable }));
    expect(checks.length).toBeGreaterThan(10);
    for (const check of checks) await expect(check.run(), check.name).resolves.toBeUndefined();
  });
});

describe("the expert", () => {
  it("follows the walkthrough, and searches where it ends", () => {
    const env = start(WALKED);
    const actions = follow(env);
    expect(actions.slice(0, 3)).toEqual(WALKTHROUGH);
    expect(actions.length).toBeGreaterThan(3);
    expect(actions.length).toBeLessThan(environment.stepLimit);
  });

  it("finds its way after other actions", () => {
    const env = start(WALKED);
    const random = createRandom(11);
    for (let step = 0; step < 25; step++) env.step(random.pick(env.admissibleActions!()));
    const copy = env.clone();
    expect(follow(copy)).toEqual(follow(env));
  });

  it("says so if there is no way", () => {
    expect(() => environment.expert!(start(HOPELESS))).toThrow(/hopeless.*found no way/);
  });

  it("ends a game that starts at its goal with any command", () => {
    expect(follow(start(EASY))).toHaveLength(1);
  });

  it("plays only alfworld", () => {
    expect(() => environment.expert!({} as Env)).toThrow(EnvError);
  });
});
