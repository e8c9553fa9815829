import { existsSync } from "node:fs";
import { dose } from "@pawl/core/dose-testing.js";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Env, StepResult } from "@pawl/core/envs/env.js";
import { describe, expect, it } from "vitest";
import { webshop } from "./webshop.js";

const open = (options: Record<string, unknown> = {}) =>
  webshop.open(webshop.options.parse({ data: "made-up", products: 300, ...options }));

const invalidActions = ["", "xyzzy", "click[search]", "Search[red]", "click[no such thing]"];

describe("webshop with a made-up catalogue keeps the contract", () => {
  for (const check of envChecks(open(), { invalidActions })) it(check.name, check.run);
});

const official = "../shared/data/webshop";

describe.skipIf(!existsSync(official))(
  "webshop with the official files (skipped if ../shared/data/webshop is absent)",
  () => {
    it.each(["synthetic", "human"])("keeps the contract: goals %s", async (goals) => {
      const environment = open({ data: official, products: undefined, goals, suggestions: 3 });
      for (const check of envChecks(environment, { invalidActions }))
        await expect(check.run()).resolves.toBeUndefined();
    });

    it.each([
      ["synthetic", 0.85],
      ["human", 0.5],
    ])("has an expert, who mostly buys what is asked for: goals %s", (goals, least) => {
      const environment = open({ data: official, products: undefined, goals });
      const tasks = environment.tasks("train").slice(0, 60);
      const bought = tasks.filter((task) => {
        const env = environment.create() as Env;
        env.reset(task);
        for (let step = 0; step < environment.stepLimit; step++) {
          const { done, reward } = env.step(environment.expert!(env) as string) as StepResult;
          if (done) return reward > 0;
        }
        return false;
      });
      expect(bought.length / tasks.length).toBeGreaterThan(least);
    });

    it("has the splits of verl-agent", () => {
      const environment = open({ data: official, products: undefined });
      expect(environment.tasks("test").map((task) => task.id)).toEqual(
        Array.from({ length: 500 }, (_, number) => `test/${number}`),
      );
      expect(environment.tasks("train")).toHaveLength(6910 - 500);
      expect(environment.tasks("train")[0]).toMatchObject({ id: "train/500", split: "train" });
    });
  },
);

it("observations after the instruction keep the contract", async () => {
  const cut = open({ observations: "after-instruction" });
  for (const check of envChecks(cut, { invalidActions }))
    await expect(check.run()).resolves.toBeUndefined();
  const [task] = cut.tasks("test");
  const first = (environment: typeof cut) => (environment.create() as Env).reset(task!);
  expect(first(cut)).toBe("'Search'");
  expect(first(open())).toMatch(/^WebShop \[SEP\] Instruction: /);
});

it("observations in lines keep the contract and show labels as they are clicked", async () => {
  const environment = open({ observations: "lines", perPage: 3, wording: "plain" });
  for (const check of envChecks(environment, { invalidActions }))
    await expect(check.run()).resolves.toBeUndefined();
  const env = environment.create() as Env;
  expect(env.reset(environment.tasks("test")[0]!)).toBe(" search");
  const results = env.step(environment.expert!(env)).observation.split("\n");
  const codes = results.filter((line) => /^ m\d+$/.test(line)).map((line) => line.trim());
  expect(codes).toHaveLength(3);
  for (const code of codes) expect(env.admissibleActions!()).toContain(`click[${code}]`);
  const same = env.clone!();
  expect(env.step(`click[ ${codes[0]} ]`)).toEqual(same.step(`click[${codes[0]}]`));
  expect(env.irreversible!("click[ buy now ]")).toBe(true);
  expect(env.step("click[ buy now ]").observation).toBe(" thank you for shopping with us!");
  expect((open().create() as Env).reset(environment.tasks("test")[0]!)).toContain("[SEP]");
});

it("blanks in an action are not understood where the original's pages are shown", () => {
  const environment = open();
  const env = environment.create() as Env;
  env.reset(environment.tasks("test")[0]!);
  env.step("search[frying pan]");
  expect(env.step("click[ next > ]").info.valid).toBe(false);
  expect(env.step("click[next >]").info.valid).toBe(true);
});

it("pages of results go on where the last one ended", () => {
  const codesOf = (perPage: number, ...clicks: string[]) => {
    const environment = open({ observations: "lines", perPage, wording: "plain" });
    const env = environment.create() as Env;
    env.reset(environment.tasks("test")[0]!);
    const pages = ["search[frying pan]", ...clicks].map((action) => env.step(action).observation);
    return pages.map((page) => page.split("\n").filter((line) => /^ m\d+$/.test(line)));
  };
  const [all] = codesOf(6);
  expect(codesOf(3, "click[next >]", "click[< prev]")).toEqual([
    all!.slice(0, 3),
    all!.slice(3),
    all!.slice(0, 3),
  ]);
});

describe("the expert", () => {
  it.each([
    { products: 500, seed: 42, observations: "lines", perPage: 4, wording: "plain" },
    { products: 1, seed: 1 },
    { products: 40, seed: 2 },
    { products: dose(3000), seed: 3 },
  ])("solves its tasks with full marks: %j", (options) => {
    const environment = open(options);
    const env = environment.create() as Env;
    const all = environment.splits.flatMap((split) => environment.tasks(split));
    // Every task of a small shop, some 400 of a large one.
    const tasks = all.filter((_, at) => at % Math.ceil(all.length / 400) === 0);
    expect(tasks.length).toBeGreaterThan(0);
    for (const task of tasks) {
      env.reset(task);
      let last = env.step(environment.expert!(env));
      for (let step = 1; step < environment.stepLimit && !last.done; step++)
        last = env.step(environment.expert!(env));
      expect([task.id, last.reward, last.info]).toEqual([
        task.id,
        10,
        { valid: true, success: true, score: 1 },
      ]);
    }
  });
});

it.each([
  ["success", [0, 10]],
  ["score", [5, 10]],
] as const)("a purchase is rewarded by its %s", (reward, expected) => {
  const environment = open({ reward, wording: "plain" });
  const env = environment.create() as Env;
  const [task] = environment.tasks("test");
  const buy = (chooses: boolean): number => {
    env.reset(task!, 1);
    for (;;) {
      const action = environment.expert!(env);
      const isChoice = !/^(search|click\[(m\d|buy now))/.test(action);
      const { reward: got, done } = env.step(isChoice && !chooses ? "click[buy now]" : action);
      if (done) return got;
    }
  };
  const [without, exact] = [buy(false), buy(true)];
  expect(exact).toBe(expected[1]);
  // Attributes and price are right, only the colour is not chosen.
  expect(without).toBeGreaterThanOrEqual(expected[0]);
  expect(without).toBeLessThan(reward === "score" ? 10 : 1);
});
