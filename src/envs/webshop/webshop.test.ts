import { describe, expect, it } from "vitest";
import { envChecks } from "../conformance.js";
import type { Env } from "../env.js";
import { webshop } from "./webshop.js";

const open = (options: Record<string, unknown> = {}) =>
  webshop.open(webshop.options.parse({ data: "made-up", products: 300, ...options }));

describe("webshop with a made-up catalogue keeps the contract", () => {
  const invalidActions = ["", "xyzzy", "click[search]", "Search[red]", "click[no such thing]"];
  for (const check of envChecks(open(), { invalidActions })) it(check.name, check.run);
});

describe("the expert", () => {
  it.each([
    { products: 1, seed: 1 },
    { products: 40, seed: 2 },
    { products: 3000, seed: 3 },
  ])("solves every task with full marks: %j", (options) => {
    const environment = open(options);
    const env = environment.create() as Env;
    const tasks = environment.splits.flatMap((split) => environment.tasks(split)).slice(0, 1500);
    expect(tasks.length).toBeGreaterThan(0);
    for (const task of tasks) {
      env.reset(task);
      let last = env.step(environment.expert!(env));
      for (let step = 1; step < environment.stepLimit && !last.done; step++) {
        last = env.step(environment.expert!(env));
      }
      expect([task.id, last.reward, last.info]).toEqual([
        task.id,
        10,
        { valid: true, success: true, score: 1 },
      ]);
    }
  });
});
