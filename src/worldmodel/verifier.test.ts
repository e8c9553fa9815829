import { describe, expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import { shopPrompt } from "../envs/webshop/prompt.js";
import { randomPolicy } from "../rollout/policies/random.js";
import type { Policy, Situation } from "../rollout/policy.js";
import { promptStyle } from "../text/prompt.js";
import { evaluate } from "../train/evaluate.js";
import {
  exactPredictor,
  modelPredictor,
  type OutcomePredictor,
  verifiedPolicy,
} from "./verifier.js";

const environment = openEnvironment({ name: "webshop", data: "made-up", products: 200 });
const style = promptStyle(shopPrompt, { style: "compact", history: "all" });

async function shop(policy: Policy, predictor: OutcomePredictor, budget: number) {
  const verified = verifiedPolicy(policy, { predictor, budget, style });
  const tally = await evaluate({
    environment,
    policy: verified.policy,
    style,
    split: environment.splits[0]!,
    tasks: 20,
    seed: 3,
  });
  return { ...tally.all, ...verified.counts };
}

/** Buys the first thing it finds. */
const hasty: Policy = {
  name: "hasty",
  batch: 1,
  act: async (situations) =>
    situations.map(({ admissible, format }) => {
      const buy = admissible!.find((action) => action.toLowerCase() === "click[buy now]");
      const product = admissible!.find((action) => /^click\[m0/.test(action));
      const search = admissible!.find((action) => /^search\[[^<]/.test(action));
      return { response: format(buy ?? product ?? search ?? admissible![0]!) };
    }),
};

describe("a verified policy", () => {
  it("is unchanged without a budget", async () => {
    const plain = await evaluate({
      environment,
      policy: hasty,
      style,
      split: environment.splits[0]!,
      tasks: 20,
      seed: 3,
    });
    const none = await shop(hasty, exactPredictor, 0);
    expect(none.successes).toBe(plain.all.successes);
    expect(none).toMatchObject({ episodes: 20, checks: 0, vetoes: 0 });
    expect(none.unchecked).toBeGreaterThan(10);
  });

  it("asks at most its budget, and with an exact predictor never raises a false alarm", async () => {
    for (const budget of [1, 4]) {
      const counts = await shop(hasty, exactPredictor, budget);
      expect(counts.checks).toBeLessThanOrEqual(20 * budget);
      expect(counts.prevented).toBeGreaterThan(10);
      expect(counts).toMatchObject({ falseAlarms: 0, missed: 0, vetoes: counts.prevented });
    }
  });

  it("buys fewer unwanted things the more it may ask", async () => {
    const failures = ({ episodes, successes, unchecked }: Awaited<ReturnType<typeof shop>>) => ({
      share: 1 - successes / episodes,
      unchecked,
    });
    const none = failures(await shop(randomPolicy(), exactPredictor, 0));
    const many = failures(await shop(randomPolicy(), exactPredictor, 50));
    expect(many.unchecked).toBe(0);
    expect(many.share).toBeLessThanOrEqual(none.share);
  });

  it("counts false alarms and misses of a wrong predictor", async () => {
    const pessimist = modelPredictor({
      name: "pessimist",
      predict: async (queries) =>
        queries.map(() => ({ observation: "", done: true, success: false })),
    });
    const optimist: OutcomePredictor = async (questions) => questions.map(() => true);
    const unverified = await shop(hasty, exactPredictor, 0);
    const agreed = await shop(hasty, optimist, 2);
    expect(agreed).toMatchObject({ vetoes: 0, prevented: 0, successes: unverified.successes });
    expect(agreed.missed).toBe(agreed.checks - unverified.successes);
    const refused = await shop(hasty, pessimist, 1);
    expect(refused.falseAlarms + refused.prevented).toBe(refused.vetoes);
    expect(refused.vetoes).toBe(refused.checks);
  });

  it("tells a policy that reads prose why it is asked again", async () => {
    const prompts: string[] = [];
    const reading: Policy = {
      ...hasty,
      async act(situations, signal) {
        for (const { prompt } of situations)
          prompts.push(prompt.map((piece) => piece.text).join(""));
        return hasty.act(situations, signal);
      },
    };
    const full = promptStyle(shopPrompt, { style: "full" });
    const never: OutcomePredictor = async (questions) => questions.map(() => false);
    const wrapped = verifiedPolicy(reading, { predictor: never, budget: 1, style: full });
    await evaluate({
      environment,
      policy: wrapped.policy,
      style: full,
      split: environment.splits[0]!,
      tasks: 1,
      seed: 0,
    });
    expect(prompts.filter((text) => text.includes("would not reach the goal now"))).toHaveLength(1);
  });
});

it("has no exact predictor behind a server", async () => {
  const situation = { task: { id: "t/0" }, env: { close: async () => undefined } };
  const questions = [{ situation: situation as unknown as Situation, action: "buy" }];
  await expect(exactPredictor(questions)).rejects.toThrow(/runs behind a server/);
});
