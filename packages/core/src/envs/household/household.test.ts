import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { dose } from "../../dose-testing.js";
import { createRandom } from "../../random.js";
import { envChecks } from "../conformance.js";
import type { Env, Environment, StepResult } from "../env.js";
import { household } from "./household.js";

type Options = z.input<typeof household.options>;

function open(options: Options = {}): Environment {
  return household.open(household.options.parse(options));
}

function create(environment: Environment): Env {
  return environment.create() as Env;
}

/** The episode of the expert, or of random play if a seed is given. */
function play(environment: Environment, id: string, seed = 0, chance?: number): string[] {
  const env = create(environment);
  const random = chance === undefined ? undefined : createRandom(chance);
  const texts = [env.reset(environment.task(id), seed)];
  let last: StepResult | undefined;
  while (texts.length <= environment.stepLimit && last?.done !== true) {
    last = env.step(random?.pick(env.admissibleActions!()) ?? environment.expert!(env));
    texts.push(last.observation);
  }
  return texts;
}

describe.each<[string, Options]>([
  ["as it comes", {}],
  ["easy", { rooms: 1, receptacles: 4, objects: 3 }],
  ["hard", { rooms: 4, receptacles: 24, objects: 24 }],
  ["noisy", { noise: "all", seed: 5 }],
  ["of two families", { families: ["cool", "pick_two"], noise: "ids" }],
])("the household world, %s", (_, options) => {
  for (const check of envChecks(open(options), { tasksPerSplit: 6 })) it(check.name, check.run);
});

describe("the household world", () => {
  it("has balanced splits of the promised sizes", () => {
    const environment = open();
    expect(environment.splits.map((split) => environment.tasks(split).length)).toEqual([
      10_000, 1_000, 1_000, 1_000,
    ]);
    expect(environment.tasks("train")[17]).toEqual({
      id: "train/17",
      split: "train",
      type: "pick_two",
    });
    for (const split of environment.splits) {
      const counts = new Map<string, number>();
      for (const { type } of environment.tasks(split))
        counts.set(type, (counts.get(type) ?? 0) + 1);
      expect(counts.size).toBe(6);
      expect(Math.max(...counts.values()) - Math.min(...counts.values())).toBeLessThanOrEqual(1);
    }
  });

  it.each(["tran/1", "train/10000", "train/07", "train/", "constructor/1"])(
    "has no task %s, and says what tasks are called",
    (id) => {
      const message = `household has no task "${id}"; its tasks are named like train/0, valid_seen/0`;
      expect(() => open().task(id)).toThrow(message);
      expect(() => create(open()).reset({ id, split: "train", type: "pick" })).toThrow(message);
    },
  );

  it.each<[Options, RegExp]>([
    [{ rooms: 2, receptacles: 5 }, /expected 6 to 12 receptacles for rooms: 2, got 5/],
    [{ rooms: 1 }, /expected 3 to 6 receptacles for rooms: 1, got 8/],
    [{ objects: 17 }, /expected at most 16 objects for receptacles: 8, got 17/],
    [{ families: ["heat", "heat"] }, /heat.* is listed twice/],
    [{ families: [] }, /families/],
    [{ roms: 2 } as Options, /roms/],
  ])("rejects the options %j", (options, message) => {
    expect(() => household.options.parse(options)).toThrow(message);
  });

  it("documents every option and gives it a default", () => {
    const options = household.options.parse({});
    for (const [name, schema] of Object.entries(household.options.shape)) {
      expect(schema.description, name).toBeTruthy();
      expect(options[name as keyof typeof options], name).toBeDefined();
    }
  });

  it("rewards success once, with 10, and lists nothing afterwards", () => {
    const environment = open();
    const env = create(environment);
    env.reset(environment.task("train/3"));
    const rewards: number[] = [];
    let last: StepResult | undefined;
    while (last?.done !== true) {
      last = env.step(environment.expert!(env));
      rewards.push(last.reward);
    }
    expect(last.info).toEqual({ valid: true, success: true });
    expect(rewards.at(-1)).toBe(10);
    expect(rewards.slice(0, -1).every((reward) => reward === 0)).toBe(true);
    expect(env.admissibleActions!()).toEqual([]);
  });

  it("takes an action with blanks around it, and no other spelling", () => {
    const environment = open();
    const env = create(environment);
    env.reset(environment.task("train/0"));
    expect(env.step("  look\n").info.valid).toBe(true);
    expect(env.step("LOOK").info.valid).toBe(false);
    expect(env.step("look  ").observation).toMatch(/ You hold nothing\.$/);
  });

  it("does not change a list of actions after returning it", () => {
    const environment = open();
    const env = create(environment);
    env.reset(environment.task("train/0"));
    const before = env.admissibleActions!();
    const copy = [...before];
    env.step(before[0]!);
    expect(before).toEqual(copy);
    expect(env.admissibleActions!()).not.toEqual(copy);
  });

  it("is hard by default: random play solves less than 2 % of the tasks", () => {
    const environment = open();
    const env = create(environment);
    const random = createRandom(11);
    const count = dose(1_200);
    let solved = 0;
    for (const task of environment.tasks("train").slice(0, count)) {
      env.reset(task);
      for (let step = 0; step < environment.stepLimit; step++) {
        if (!env.step(random.pick(env.admissibleActions!())).done) continue;
        solved++;
        break;
      }
    }
    expect(solved / count).toBeLessThan(0.02);
  });

  it("says in valid_unseen only words that it says in train", () => {
    const environment = open();
    const wordsOf = (split: string, count: number): Set<string> => {
      const words = new Set<string>();
      for (let index = 0; index < count; index++) {
        const texts = [
          ...play(environment, `${split}/${index}`),
          ...play(environment, `${split}/${index}`, 0, index),
        ];
        for (const word of texts.join(" ").match(/[a-z]+ \d|\w+|[^\w\s]/gi) ?? []) words.add(word);
      }
      return words;
    };
    const known = wordsOf("train", dose(1_500, 500));
    expect(known.size).toBeLessThan(200);
    expect([...wordsOf("valid_unseen", dose(300))].filter((word) => !known.has(word))).toEqual([]);
  });

  it("refuses to play another world with its expert", () => {
    const environment = open();
    const env = create(environment);
    expect(() => environment.expert!({ ...env })).toThrow(/before reset/);
    env.reset(environment.task("train/0"));
    const { household: _, ...other } = env as Env & { household: unknown };
    expect(() => environment.expert!(other)).toThrow(/play household environments only/);
  });
});

describe("noise", () => {
  const withoutIds = (text: string) => text.replace(/ #\d{1,3}\b/g, "");
  // Sentences start with words of two or three letters before a name; brands are longer.
  const withoutBrands = (text: string) => text.replace(/\b[A-Z][a-z]{3,} (?=[a-z]+ \d)/g, "");

  it.each(["ids", "brands", "all"] as const)("%s changes the surface and nothing else", (noise) => {
    const noisy = open({ noise });
    const plain = open();
    for (let index = 0; index < dose(60); index++) {
      const clean = play(plain, `train/${index}`, 3).join("\n");
      const dirty = play(noisy, `train/${index}`, 3).join("\n");
      expect(withoutIds(dirty) !== dirty).toBe(noise !== "brands");
      expect(withoutBrands(dirty) !== dirty).toBe(noise !== "ids");
      expect(withoutBrands(withoutIds(dirty))).toBe(clean);
    }
  });

  it("varies with the episode's seed and never enters actions, goal or context", () => {
    const environment = open({ noise: "all" });
    const plain = open();
    expect(play(environment, "train/4", 1)).toEqual(play(environment, "train/4", 1));
    expect(play(environment, "train/4", 1)).not.toEqual(play(environment, "train/4", 2));
    const [env, clean] = [create(environment), create(plain)];
    env.reset(environment.task("train/4"), 1);
    clean.reset(plain.task("train/4"), 1);
    for (let step = 0; step < 30; step++) {
      expect(env.admissibleActions!()).toEqual(clean.admissibleActions!());
      const action = createRandom(step).pick(env.admissibleActions!());
      env.step(action);
      clean.step(action);
    }
    expect(env.goal).toBe(clean.goal);
    expect(env.initialContext!()).toBe(clean.initialContext!());
  });

  it("is the same for every seed without noise", () => {
    expect(play(open(), "train/4", 1)).toEqual(play(open(), "train/4", 2));
  });
});
