import { describe, expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import { shopPrompt } from "../envs/webshop/webshop.js";
import type { Episode } from "../rollout/episode.js";
import { randomPolicy } from "../rollout/policies/random.js";
import type { Policy, Situation } from "../rollout/policy.js";
import { rollout } from "../rollout/rollout.js";
import { packEpisode, unpackEpisode } from "../runs/episode-record.js";
import { type PromptPiece, promptStyle } from "../text/prompt.js";
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

describe("a verified agent in a conversation", () => {
  const chat = promptStyle(shopPrompt, { style: "chat" });
  const never: OutcomePredictor = async (questions) => questions.map(() => false);
  const told = '"click[buy now]" would not reach the goal now.';

  async function shopping(budget: number) {
    const read: (readonly PromptPiece[])[] = [];
    const reading: Policy = {
      ...hasty,
      async act(situations, signal) {
        read.push(...situations.map(({ prompt }) => prompt));
        return hasty.act(situations, signal);
      },
    };
    const { policy, counts } = verifiedPolicy(reading, { predictor: never, budget, style: chat });
    const [group] = await rollout({
      ...{ environment, policy, style: chat, groupSize: 1, seed: 0 },
      tasks: environment.tasks(environment.splits[0]!).slice(0, 1),
    });
    return { episode: group!.episodes[0]!, counts, read };
  }

  it("is told of a veto by the message that answers its action, in the words of other styles", async () => {
    const { episode, counts, read } = await shopping(2);
    const refused = episode.steps.filter((step) => step.refused);
    expect(refused.map(({ observation, reward }) => [observation.toLowerCase(), reward])).toEqual([
      [told, 0],
      [told, 0],
    ]);
    expect(counts).toMatchObject({ irreversible: 3, checks: 2, vetoes: 2, unchecked: 1 });
    // What was refused did not happen: the agent was still in the shop, and bought in the end.
    expect(episode.stop).toBe("done");
    const at = episode.steps.findIndex((step) => step.refused);
    expect(read[at + 1]!.slice(-2)).toMatchObject([
      { role: "assistant", text: episode.steps[at]!.response },
      { role: "user", text: episode.steps[at]!.observation },
    ]);
  });

  it("has a record that holds what it was told, from which its prompts come out again", async () => {
    const { episode, read } = await shopping(1);
    const back = unpackEpisode(JSON.parse(JSON.stringify(packEpisode(episode))));
    expect(back.steps.filter((step) => step.refused)).toHaveLength(1);
    for (const [step, prompt] of read.entries())
      expect([back.steps[step]!.prompt, rendered(back, step)]).toEqual([prompt, prompt]);
  });

  const rendered = ({ goal, firstObservation, steps }: Episode, index: number) =>
    chat.render({
      ...{ goal, firstObservation, steps: steps.slice(0, index), index, admissible: undefined },
      observation: index === 0 ? firstObservation : steps[index - 1]!.observation,
    });
});

it("has no exact predictor behind a server", async () => {
  const situation = { task: { id: "t/0" }, env: { close: async () => undefined } };
  const questions = [{ situation: situation as unknown as Situation, action: "buy" }];
  await expect(exactPredictor(questions)).rejects.toThrow(/runs behind a server/);
});
