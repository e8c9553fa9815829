/** Each policy loss, as the engine learns it in several mini-batches, against NumPy's. */
import { execFileSync, spawnSync } from "node:child_process";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { describe, expect, it } from "vitest";
import type { Engine, TrainSequence } from "../engine/engine.js";
import { derivative } from "../objectives/expression-derivative.js";
import { evaluateTokens } from "../objectives/expression-evaluate.js";
import { type ObjectiveSettings, updateObjective } from "../objectives/objective.js";
import { policyLossNames } from "../objectives/policy-losses.js";
import { createRandom } from "../random.js";
import { prepareUpdate } from "../update/update.js";
import { groupsOf } from "../update/update-testing.js";
import { minibatches } from "./learn.js";
import { withResponseRatios } from "./response-ratios.js";

const python = process.env.PAWL_PYTHON ?? "python3";
const hasNumpy = spawnSync(python, ["-c", "import numpy"]).status === 0;

/** From responses (old and new log-probabilities, an advantage) to loss and slopes, as the papers write it. */
const NUMPY = `
import json, sys
import numpy as np
def responses(case):
    for r in case["responses"]:
        yield np.array(r["new"]), np.array(r["old"]), r["advantage"]
def weights(case):
    tokens = sum(len(r["new"]) for r in case["responses"])
    for r in case["responses"]:
        mean = {"token-mean": 1 / tokens, "response-mean": 1 / (len(case["responses"]) * len(r["new"])),
                "group-mean": 1 / case["episodes"]}[case["mean"]]
        behaviour = np.exp(np.array(r["old"]) - np.array(r["drawn"]))
        yield mean * (np.minimum(behaviour, case["cap"]) if case["offPolicy"] else 1)
def one(case, new, old, a):
    name, r = case["loss"], np.exp(new - old)
    if name == "clip":
        surrogate = np.minimum(r * a, np.clip(r, 1 - case["low"], 1 + case["high"]) * a)
        if a < 0: surrogate = np.maximum(surrogate, 3 * a)
        alive = np.isclose(surrogate, r * a)
        return -surrogate, np.where(alive, -a * r, 0)
    if name == "cispo":
        w = np.minimum(r, 1 + case["high"])
        return -w * a * new, -w * a
    s = (np.prod(r)) ** (1 / len(r))
    clipped = np.clip(s, 1 - case["low"], 1 + case["high"]) * a
    alive = s * a <= clipped
    return np.full(len(new), -min(s * a, clipped)), np.full(len(new), -a * s if alive else 0.0)
out = []
for case in json.load(sys.stdin):
    pairs = [(w * l, w * g) for w, (n, o, a) in zip(weights(case), responses(case)) for l, g in [one(case, n, o, a)]]
    out.append({"loss": float(sum(np.sum(l) for l, _ in pairs)), "slopes": np.concatenate([g for _, g in pairs]).tolist()})
print(json.dumps(out))
`;

const LENGTHS = [[3, 1, 4], [2, 5], [1]];
const random = createRandom(4);
const logprob = () => -0.05 - 2 * random.next();
const responses = LENGTHS.flat().map((length) => {
  const old = Array.from({ length }, logprob);
  const advantage = Math.round(20 * (random.next() - 0.5)) / 10;
  const near = () => old.map((l) => Math.min(l + 0.8 * (random.next() - 0.5), -1e-3));
  // What another sampler thought of its tokens: some weights are below 1, some above the cap.
  const drawn = old.map((l) => l - 1.5 * (random.next() - 0.3));
  return { old, new: near(), drawn, advantage };
});

interface Case {
  readonly loss: string;
  readonly mean: "token-mean" | "response-mean" | "group-mean";
  readonly offPolicy: boolean;
  readonly high: number;
}

const MEANS = ["token-mean", "response-mean", "group-mean"] as const;
const [LOW, HIGH, CAP] = [0.2, 0.2, 1.3];
const cases: readonly Case[] = [
  ...policyLossNames().flatMap((loss) =>
    MEANS.flatMap((mean) =>
      [false, true].map((offPolicy) => ({ loss, mean, offPolicy, high: HIGH })),
    ),
  ),
  // DAPO: clip-higher, and the mean over tokens (DAPO eq. 8).
  { loss: "clip", mean: "token-mean", offPolicy: false, high: 0.28 },
];

const settings = ({ loss, mean, high }: Omit<Case, "offPolicy">): ObjectiveSettings =>
  ({
    ...{ loss, aggregation: mean, kl: 0, entropy: 0, clipHigh: high, importanceCap: CAP },
  }) as ObjectiveSettings;

/** The update of one group with these responses. */
function updateOf({ mean, offPolicy }: Pick<Case, "mean" | "offPolicy">) {
  const steps = responses.map(({ old, drawn }) => ({ action: offPolicy ? drawn : old }));
  const episodes = LENGTHS.map(({ length }) => ({ steps: steps.splice(0, length) }));
  const at = responses.map(({ advantage }) => advantage);
  const advantages = [LENGTHS.map(({ length }) => at.splice(0, length))];
  // A prompt of two tokens comes before each action.
  const oldLogprobs = responses.map(({ old }) => Float32Array.from([0, 0, ...old]));
  return prepareUpdate(
    groupsOf([episodes]),
    { advantages },
    {
      ...{ paw: { loss: "off" }, aggregation: mean, maxReturn: 1 },
      ...(offPolicy && { results: { oldLogprobs } }),
    },
  );
}

/** What NumPy makes of the cases. */
function computed(): readonly { readonly loss: number; readonly slopes: readonly number[] }[] {
  const given = cases.map((one) => {
    const ranges = one.loss === "gspo" ? { low: 3e-4, high: 4e-4 } : { low: LOW };
    return { ...one, ...ranges, cap: CAP, episodes: LENGTHS.length, responses };
  });
  const input = JSON.stringify(given);
  return JSON.parse(execFileSync(python, ["-c", NUMPY], { encoding: "utf8", input }));
}

describe.runIf(hasNumpy)("policy losses, where PAWL_PYTHON or python3 has NumPy", () => {
  let all: ReturnType<typeof computed> | undefined;
  const named = cases.map((one, i) => ({ ...one, i }));
  it.each(named)("$loss to 1 + $high, $mean, off-policy: $offPolicy", async ({ i, ...one }) => {
    all ??= computed();
    const expected = all[i]!;
    const objective = updateObjective(settings(one), { loss: "off" }, { sampler: one.offPolicy });
    const update = updateOf(one);
    // The engine is asked for the probabilities that the weights have by now.
    const moved = { forward: async (asked: readonly TrainSequence[]) => asked.map(now) };
    const ready = await withResponseRatios(
      moved as unknown as Engine,
      update.sequences,
      objective,
      false,
    );
    const sums = { loss: 0, slopes: [] as number[] };
    for (const sequence of ready) {
      const { ids, inputs } = sequence;
      const quantities = { logprob: now(sequence).logprobs };
      const parts = [objective.loss, derivative(objective.loss, "logprob")];
      const [losses, slopes] = evaluateTokens(parts, { count: ids.length, quantities, inputs });
      for (let at = 0; at < ids.length; at++) {
        sums.loss += losses![at]!;
        if (inputs.policyWeight![at] !== 0) sums.slopes.push(slopes![at]!);
      }
    }
    expect(sums.loss).toBeCloseTo(expected.loss, 5);
    expect(sums.slopes).toHaveLength(expected.slopes.length);
    for (const [at, slope] of sums.slopes.entries())
      expect(slope).toBeCloseTo(expected.slopes[at]!, 5);
  });
});

/** What the moved weights say of a sequence's actions, which are found by their old log-probabilities. */
function now({ ids, inputs }: TrainSequence): { readonly logprobs: Float32Array } {
  const flat = responses.flatMap((one) => one.old.map((old, i) => [old, one.new[i]!] as const));
  const newOf = new Map(flat.map(([old, moved]) => [Math.fround(old), moved]));
  const { oldLogprob } = inputs;
  return { logprobs: Float32Array.from(ids, (_, at) => newOf.get(oldLogprob![at]!) ?? 0) };
}

it("a response's ratio is that of the embedded engine's probabilities, after its weights moved", async () => {
  const model = { preset: "tiny", vocabularySize: 512, maxContext: 64 } as const;
  const engine = await createEmbeddedEngine({ model, threads: 1 });
  const gspo = { loss: "gspo", mean: "response-mean", high: HIGH } as const;
  const objective = updateObjective(settings(gspo), { loss: "off" });
  const update = updateOf({ mean: "response-mean", offPolicy: false });
  const batches = minibatches(update, { minibatch: 3, aggregation: "response-mean", seed: 1 });
  expect(batches.length).toBe(2);
  const [first, second] = batches;
  const ones = await withResponseRatios(engine, first!, objective, true);
  expect(ones.flatMap(({ inputs }) => Array.from(inputs.responseLogRatio!))).toEqual(
    first!.flatMap(({ ids }) => Array.from(ids, () => 0)),
  );
  const { metrics } = await engine.forwardBackward(ones, objective);
  await engine.optimStep({ learningRate: 0.01 });
  const ready = await withResponseRatios(engine, second!, objective, false);
  const logprobs = await engine.forward(second!);
  for (const [i, { inputs }] of ready.entries()) {
    const isAction = Array.from(inputs.policyWeight!, (weight) => weight > 0);
    const of = (values: ArrayLike<number>) => Array.from(values).filter((_, at) => isAction[at]);
    const differences = of(logprobs[i]!.logprobs).map((l, at) => l - of(inputs.oldLogprob!)[at]!);
    const mean = differences.reduce((sum, x) => sum + x, 0) / differences.length;
    for (const ratio of of(inputs.responseLogRatio!)) expect(ratio).toBeCloseTo(mean, 4);
  }
  expect(metrics["policy.clipped"]).toBe(0);
  await engine.dispose();
});
