import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { dose } from "../../dose-testing.js";
import { createRandom } from "../../random.js";
import { callText } from "../../text/tool.js";
import { envChecks } from "../conformance.js";
import type { Env, Environment, StepResult } from "../env.js";
import {
  drawCase,
  grant,
  isGenuine,
  type Level,
  levels,
  requestKinds,
  rightOutcome,
  type Split,
  splitSizes,
} from "./case.js";
import { desk } from "./desk.js";

function open(options: z.input<typeof desk.options> = {}): Environment {
  return desk.open(desk.options.parse(options));
}

const call = (tool: string, given: Record<string, unknown>): string =>
  callText({ tool, arguments: given });

/** A world at the start of a task. */
function start(environment: Environment, id: string): Env {
  const env = environment.create() as Env;
  env.reset(environment.task(id));
  return env;
}

/** The first case of a split for which a condition holds, with its id. */
function find(level: Level, wanted: (one: ReturnType<typeof drawCase>) => boolean) {
  for (let index = 0; index < 2_000; index++) {
    const one = drawCase("train", index, level, 0);
    if (wanted(one)) return { one, id: `train/${index}` };
  }
  throw new Error("there is no such case among the first 2,000");
}

/** The expert's calls and the last answer. */
function playExpert(environment: Environment, env: Env) {
  const actions: string[] = [];
  let last: StepResult;
  do {
    const action = environment.expert!(env);
    actions.push(action);
    last = env.step(action);
  } while (!last.done && actions.length < 40);
  return { actions, last };
}

describe.each(levels)("the desk, %s", (level) => {
  const environment = open({ level });
  for (const check of envChecks(environment, { tasksPerSplit: 6 })) it(check.name, check.run);

  it("is solved by its expert in every split, with steps to spare", () => {
    for (const split of environment.splits)
      for (const { id } of environment.tasks(split).slice(0, dose(300))) {
        const { actions, last } = playExpert(environment, start(environment, id));
        expect([id, last.info.success]).toEqual([id, true]);
        expect(actions.length).toBeLessThanOrEqual(environment.stepLimit / 2 + 3);
      }
  });

  it("is not solved by refusing unheard, nor by chance", () => {
    const tasks = environment.tasks("train").slice(0, dose(600));
    const refused = tasks.filter(
      ({ id }) =>
        start(environment, id).step(call("close_case", { outcome: "refused" })).info.success,
    ).length;
    expect(refused).toBe(0);
    const random = createRandom(3);
    const lucky = tasks.filter(({ id }) => {
      const env = start(environment, id);
      for (let step = 0; step < environment.stepLimit; step++) {
        const { done, info } = env.step(random.pick(env.admissibleActions!()));
        if (done) return info.success;
      }
      return false;
    }).length;
    expect(lucky / tasks.length).toBeLessThan(0.2);
  });

  it("has no task in two splits, and products in the unseen ones that train never shows", () => {
    const cases = (split: Split) =>
      Array.from({ length: Math.min(dose(1_000, 300), splitSizes[split]) }, (_, index) =>
        drawCase(split, index, level, 0),
      );
    const pairs = (split: Split) =>
      new Set(
        cases(split).map(({ products, orders, requests }) => {
          const { number, product } = orders[requests[0]!.order]!;
          return `${number} ${products[product]!.number}`;
        }),
      );
    const counted = (environment.splits as readonly Split[]).map(pairs);
    const together = new Set(counted.flatMap((set) => [...set]));
    expect(together.size).toBe(counted.reduce((sum, { size }) => sum + size, 0));
    const shown = new Set(
      cases("train").flatMap(({ products }) => products.map((p) => `${p.colour} ${p.thing}`)),
    );
    for (const { products, orders, requests } of cases("test_unseen"))
      for (const { order } of requests) {
        const { colour, thing } = products[orders[order]!.product]!;
        expect(shown).not.toContain(`${colour} ${thing}`);
      }
  });

  it("says in the unseen splits only words that it says in train", () => {
    const words = (split: string, count: number): Set<string> =>
      new Set(
        environment
          .tasks(split)
          .slice(0, count)
          .flatMap(({ id }) => {
            const env = start(environment, id);
            return [env.goal, env.initialContext!()!].join(" ").match(/[a-z]+|\d+/gi) ?? [];
          }),
      );
    const known = words("train", dose(1_500, 500));
    expect(known.size).toBeLessThan(250);
    expect([...words("test_unseen", dose(300))].filter((word) => !known.has(word))).toEqual([]);
  });
});

describe("the rules", () => {
  it("are in the prompt at the easy level, and read by a tool otherwise", () => {
    expect(open({ level: "easy" }).prompt!.instructions).toContain("up to 30 days after delivery");
    const environment = open({ level: "medium" });
    expect(environment.prompt!.instructions).not.toMatch(/\d/);
    const read = new Set(
      environment
        .tasks("train")
        .slice(0, 50)
        .map(({ id }) => {
          const env = start(environment, id);
          return env.step(call("read_rule", { topic: "return" })).observation;
        }),
    );
    expect(read.size).toBe(4);
  });

  it("grant and refuse every kind of request", () => {
    for (const kind of requestKinds) {
      const granted = new Set<string | undefined>();
      for (let index = 0; index < 600; index++) {
        const one = drawCase("train", index, "medium", 0);
        if (one.requests[0]!.kind === kind) granted.add(grant(one, one.requests[0]!)?.tool);
      }
      expect([kind, granted.size]).toEqual([kind, 2]);
    }
  });

  it.each([
    ["a sent order is not cancelled", "cancel", "sent", "cancel_order"],
    ["an open order is not refunded", "return", "open", "refund_order"],
  ] as const)("matter: %s, though the tool would do it", (_, kind, place, tool) => {
    const environment = open({ level: "easy" });
    const { one, id } = find(
      "easy",
      ({ requests: [request], orders }) =>
        request!.kind === kind && orders[request!.order]!.place === place,
    );
    const order = one.orders[one.requests[0]!.order]!.number;
    const wrong = start(environment, id);
    wrong.step(call("get_order", { order }));
    const right = wrong.clone();
    expect(wrong.step(call(tool, { order })).info.valid).toBe(true);
    for (const outcome of ["done", "refused"])
      expect((wrong.clone() as Env).step(call("close_case", { outcome })).reward).toBe(0);
    expect(right.step(call("close_case", { outcome: "refused" })).reward).toBe(1);
  });

  it("give gold customers more days", () => {
    const { one } = find("medium", ({ customer, requests: [request], orders, rules }) => {
      const order = orders[request!.order]!;
      return (
        request!.kind === "return" &&
        customer.gold &&
        order.place === "delivered" &&
        order.days > rules.returnDays &&
        order.days <= rules.returnDays + 10
      );
    });
    const [request] = one.requests;
    expect(grant(one, request!)?.tool).toBe("refund_order");
    const plain = { ...one, customer: { ...one.customer, gold: false } };
    expect(grant(plain, request!)).toBeUndefined();
  });

  it("turn away who does not know the postcode, at the hard level only", () => {
    const { one, id } = find("hard", (one) => !isGenuine(one));
    expect(rightOutcome(one)).toBe("refused");
    const environment = open({ level: "hard" });
    const { actions } = playExpert(environment, start(environment, id));
    expect(actions).toEqual([
      call("get_customer", { customer: one.customer.number }),
      call("ask_customer", { about: "postcode" }),
      call("close_case", { outcome: "refused" }),
    ]);
    expect(() => find("medium", (other) => !isGenuine(other))).toThrow(/no such case/);
  });
});

describe("the desk", () => {
  it("grants one of two requests and refuses the other, as partly done", () => {
    const { one, id } = find(
      "hard",
      (one) =>
        isGenuine(one) && rightOutcome(one) === "partly" && one.requests[0]!.kind === "broken",
    );
    const environment = open({ level: "hard" });
    const env = start(environment, id);
    const granted = grant(one, one.requests[0]!)!;
    for (const { order } of one.requests)
      env.step(call("get_order", { order: one.orders[order]!.number }));
    expect(env.step(callText(granted)).info.valid).toBe(true);
    expect((env.clone() as Env).step(call("close_case", { outcome: "done" })).reward).toBe(0);
    expect(env.step(call("close_case", { outcome: "partly" })).reward).toBe(1);
  });

  it("has a customer who answers what is asked and keeps the rest", () => {
    const { one, id } = find("medium", ({ requests: [request] }) => request!.kind === "exchange");
    const env = start(open(), id);
    const ask = (about: string) => env.step(call("ask_customer", { about })).observation;
    const [{ order, wish }] = one.requests as [(typeof one.requests)[number]];
    expect(env.goal).toBe(`Customer #${one.customer.number} wants another colour in an order.`);
    expect(ask("order")).toBe(
      `The customer says: order #${one.orders[order]!.number} for exchange.`,
    );
    expect(ask("colour")).toBe(`The customer says: ${one.products[wish!]!.colour}.`);
    expect(ask("address")).toBe("The customer says: that does not matter.");
  });

  it("marks what cannot be undone, and refuses what cannot be done", () => {
    const { one, id } = find("medium", ({ orders }) => orders[0]!.place === "delivered");
    const env = start(open(), id);
    const order = one.orders[0]!.number;
    expect(env.irreversible!(call("refund_order", { order }))).toBe(true);
    expect(env.irreversible!(call("get_order", { order }))).toBe(false);
    expect(env.irreversible!(call("close_case", { outcome: "done" }))).toBe(true);
    const say = (tool: string, given: Record<string, unknown>) => {
      const { observation, info } = env.step(call(tool, given));
      return [observation, info.valid];
    };
    expect(say("cancel_order", { order })).toEqual([
      `Order #${order} is delivered already.`,
      false,
    ]);
    expect(say("refund_order", { order })).toEqual([`Order #${order} is refunded.`, true]);
    expect(say("refund_order", { order })).toEqual([`Order #${order} is refunded already.`, false]);
    expect(say("get_order", { order: 9 })[1]).toBe(false);
    expect(say("get_ordr", { order })).toEqual([
      expect.stringContaining('Did you mean "get_order"?'),
      false,
    ]);
    expect(say("exchange_product", { order, product: one.products[0]!.number })[1]).toBe(false);
  });

  it("draws other cases from another seed, and the same ones from the same", () => {
    const goal = (seed: number) => start(open({ seed }), "train/4").initialContext!();
    expect(goal(1)).toBe(goal(1));
    expect(goal(1)).not.toBe(goal(2));
  });

  it("offers the tools of its level", () => {
    const names = (level: Level) => start(open({ level }), "train/0").tools!().length;
    expect(levels.map(names)).toEqual([6, 12, 12]);
  });
});
