/**
 * The recount against what training computes: two ways to the same numbers, over random updates.
 */
import { readFileSync } from "node:fs";
import {
  advantageOptions,
  computeAdvantages,
  equalGroups,
} from "@pawl/core/advantages/advantages.js";
import { dose } from "@pawl/core/dose-testing.js";
import { evaluateObjective } from "@pawl/core/objectives/expression-evaluate.js";
import { objectiveOptions, updateObjective } from "@pawl/core/objectives/objective.js";
import { pawOptions } from "@pawl/core/objectives/paw-options.js";
import type { Group } from "@pawl/core/rollout/episode.js";
import { minibatches } from "@pawl/core/train/learn.js";
import { updateMetrics } from "@pawl/core/train/metrics.js";
import { prepareUpdate } from "@pawl/core/update/update.js";
import { groupsOf } from "@pawl/core/update/update-testing.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { recount } from "./recount.js";
import { recountAdvantages } from "./recount-advantages.js";
import { tinyConfig } from "./testing.js";

const step = fc.record({
  action: fc.array(fc.double({ min: -3, max: -0.01, noNaN: true }), { minLength: 1, maxLength: 3 }),
  observation: fc.integer({ min: 1, max: 4 }),
  prompt: fc.integer({ min: 1, max: 6 }),
  reward: fc.constantFrom(0, 0, 1, 10),
  words: fc.constantFrom("look", "go", "take"),
});
const episode = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  broken: fc.nat(5).map((n) => n === 0),
});
const validity = fc.infiniteStream(fc.boolean());
/** An agent's forks: other orders than the one listed, and what their steps acted on. */
const orders = fc.infiniteStream(fc.nat());
const forked = (groups: readonly Group[], next: () => number): readonly Group[] =>
  groups.map((group) => ({
    ...group,
    episodes: group.episodes.map((one) => {
      if (next() % 2 === 0) return one;
      const keys = one.steps.map((_, at) => [next(), at] as const);
      const order = keys.sort(([a, i], [b, j]) => a - b || i - j).map(([, at]) => at);
      const steps = one.steps.map((played, at) => ({
        ...played,
        time: order.indexOf(at),
        ...(next() % 2 === 0 && { seen: ["a shelf", "a desk"][next() % 2]! }),
      }));
      return { ...one, steps };
    }),
  }));
const updates = fc
  .tuple(
    fc.array(fc.array(episode, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
    validity,
    orders,
  )
  .map(([sketches, valid, numbers]): readonly Group[] =>
    forked(groupsOf(sketches), () => numbers.next().value as number).map((group, g) => ({
      ...group,
      episodes: group.episodes.map((one) => ({
        ...one,
        // Every other task has a largest return of its own.
        ...(g % 2 === 1 && { maxReturn: 4 }),
        steps: one.steps.map((played) => {
          const wellFormed = valid.next().value as boolean;
          return { ...played, wellFormed, valid: wellFormed && (valid.next().value as boolean) };
        }),
      })),
    })),
  );
const advantages = fc.constantFrom(
  { name: "grpo" },
  { name: "grpo", per: "episode", penaltyPlace: "after" },
  { name: "grpo", penaltyOn: "malformed" },
  { name: "grpo", norm: "mean" },
  { name: "rloo" },
  { name: "rloo", per: "step" },
  { name: "gigpo" },
  { name: "gigpo", norm: "mean", stepWeight: 0.5, penaltyPlace: "after", penaltyOn: "malformed" },
);
const paws = fc.record({
  loss: fc.constantFrom("cmae", "ce", "off"),
  alpha: fc.constantFrom(0.3, 0.75, 1),
  lambda: fc.constantFrom("adaptive", 0.2, 0),
});

describe("a recount", () => {
  it("reproduces the numbers that training records, in another way", () => {
    fc.assert(
      fc.property(
        updates,
        advantages,
        paws,
        fc.constantFrom("token-mean", "response-mean", "group-mean"),
        fc.constantFrom(6, 100),
        (groups, advantage, given, aggregation, maxTokens) => {
          const paw = pawOptions().parse(given);
          const objective = objectiveOptions().parse({ kl: 0, entropy: 0, aggregation });
          const options = advantageOptions().parse(advantage);
          const table = computeAdvantages(groups, options);
          const config = { ...tinyConfig(), paw, objective, minibatch: 256 };
          const prepared = prepareUpdate(groups, table, {
            ...{ paw, aggregation: objective.aggregation, maxReturn: 10, maxTokens },
          });
          const line = updateMetrics({
            ...{ index: 0, groups, prepared, gradients: undefined },
            equalGroups: equalGroups(table),
            learnt: undefined,
            isAhead: false,
            optimizerSteps: 0,
            seconds: { rollout: 0, score: 0, prepare: 0, measure: 0, correct: 0, learn: 0 },
          });
          const [batch = []] = minibatches(prepared, { ...config, aggregation, seed: 1 });
          const learnt: Record<string, number> = { "train.tokens": 0 };
          for (const { ids, inputs } of batch) {
            learnt["train.tokens"]! += ids.length;
            const { metrics } = evaluateObjective(
              updateObjective(objective, paw, { critic: false }),
              { count: ids.length, quantities: { logprob: inputs.oldLogprob! }, inputs },
            );
            for (const name of ["policy.tokens", "policy.loss", "world.tokens"])
              if (name in metrics) learnt[name] = (learnt[name] ?? 0) + metrics[name]!;
          }
          const counted = recount(groups, {
            ...{ config, maxReturn: 10, maxTokens, ownGroups: false },
            advantages: recountAdvantages(groups, options),
          });
          const { update: _, "memory.mib": __, ...rest } = line;
          const recorded = Object.entries({ ...rest, ...learnt }).filter(
            ([name]) => !name.startsWith("seconds."),
          );
          expect(Object.keys(counted).sort()).toEqual(recorded.map(([name]) => name).sort());
          for (const [name, value] of recorded) expect(counted[name], name).toBeCloseTo(value, 5);
        },
      ),
      { numRuns: dose(150) },
    );
  });

  it("reproduces a critic's advantages and returns", () => {
    fc.assert(
      fc.property(
        updates,
        fc.constantFrom("response", "episode"),
        fc.constantFrom("inside", "after"),
        fc.constantFrom("malformed", "invalid"),
        fc.double({ min: 0.5, max: 1, noNaN: true }),
        (groups, scope, penaltyPlace, penaltyOn, gamma) => {
          const given = { name: "ppo", scope, penaltyPlace, penaltyOn, gamma, lambda: 0.9 };
          const options = advantageOptions().parse(given);
          const values = groups.map((group) =>
            group.episodes.map((one, e) =>
              one.stop === "broken"
                ? []
                : one.steps.map(({ sequence }, t) => sequence!.logprobs!.map((l) => l * e - t)),
            ),
          );
          const first = computeAdvantages(groups, options, values);
          const second = recountAdvantages(groups, options, values)!;
          const close = (a: unknown, b: unknown) => {
            const [x, y] = [[a].flat(9) as number[], [b].flat(9) as number[]];
            expect(y).toHaveLength(x.length);
            x.forEach((value, i) => {
              expect(y[i]).toBeCloseTo(value, 6);
            });
          };
          close(first.advantages, second.advantages);
          close(first.returns, second.returns);
        },
      ),
      { numRuns: dose(100) },
    );
  });

  it("runs none of the code that training computes with", () => {
    for (const file of ["recount.ts", "recount-advantages.ts"]) {
      const imports = readFileSync(`packages/training/src/${file}`, "utf8").matchAll(
        /^import (?!type)[^;]*from "([^"]+)"/gm,
      );
      const used = [...imports].map(([, from]) => from);
      expect(used.filter((from) => from !== "@pawl/core/text/sequence.js")).toEqual([]);
    }
  });
});
