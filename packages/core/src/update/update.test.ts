import { describe, expect, it } from "vitest";
import { settingsOf } from "../config/settings.js";
import { expressionsOf } from "../objectives/expression.js";
import { evaluateObjective } from "../objectives/expression-evaluate.js";
import { inputsOf, quantitiesOf } from "../objectives/expression-interpret.js";
import { objectiveOptions, updateObjective } from "../objectives/objective.js";
import { type PawOptions, pawOptions } from "../objectives/paw-options.js";
import { prepareUpdate, scaleWorld, type UpdateOptions } from "./update.js";
import { type EpisodeSketch, groupsOf, ids } from "./update-testing.js";

const L = Math.log;
/** A step whose single action token had this probability. */
const step = (q: number, reward = 0, words = `q ${q}`) => ({ action: [L(q)], reward, words });

/** Group 0 earns half of the maximum, group 1 nothing; group 1 has a broken episode. */
const sketches: readonly (readonly EpisodeSketch[])[] = [
  [{ steps: [step(0.4), step(0.99, 10)] }, { steps: [step(0.5)] }],
  [{ steps: [step(0.3)], broken: true }, { steps: [step(0.35)] }],
];
const groups = groupsOf(sketches);
const advantages = {
  advantages: [
    [[1, 2], [3]],
    [[], [4]],
  ],
};

const prepare = (paw: Partial<PawOptions> = {}, more: Partial<UpdateOptions> = {}) =>
  prepareUpdate(groups, advantages, {
    paw: pawOptions().parse(paw),
    aggregation: "token-mean",
    maxReturn: 10,
    ...more,
  });
const selectedOf = (update: ReturnType<typeof prepare>) =>
  update.transitions.map(({ selected }) => selected);
const column = (update: ReturnType<typeof prepare>, name: string) =>
  update.sequences.map(({ inputs }) => Array.from(inputs[name] ?? []));

describe("pawOptions", () => {
  it("have help for each", () => {
    for (const setting of [...settingsOf(pawOptions()), ...settingsOf(objectiveOptions())])
      expect(setting.description).not.toBe("");
    expect(() => pawOptions().parse({ alpha: 0 })).toThrow();
    expect(() => pawOptions().parse({ weight: 1 })).toThrow(/weight/);
  });
});

describe("prepareUpdate", () => {
  it("makes one sequence per step, with the observation if it is selected", () => {
    const update = prepare();
    // Entropies −q·log q: 0.37 (q 0.4), 0.01 (q 0.99), 0.35 (q 0.5), 0.37 (q 0.35): three of four.
    expect(selectedOf(update)).toEqual([true, false, true, true]);
    expect(update.sequences.map(({ ids }) => ids.length)).toEqual([5, 3, 5, 5]);
    expect(update.sequences[0]!.ids).toEqual([
      ...ids(100, 0, 2),
      ...ids(200, 0, 1),
      ...ids(300, 0, 2),
    ]);
    expect(update.sequences.map(({ targets }) => Array.from(targets!))).toEqual([
      [0, 0, 1, 1, 1],
      [0, 0, 1],
      [0, 0, 1, 1, 1],
      [0, 0, 1, 1, 1],
    ]);
  });

  it("weights tokens by PaW eq. 11", () => {
    const update = prepare();
    expect(update.lambdas).toEqual([0.5, 1]);
    // |G| = 2; group 0 has two selected transitions, group 1 one; every |o| is 2.
    const [w0, w1] = [Math.fround(0.5 / (2 * 2 * 2)), Math.fround(1 / (2 * 1 * 2))];
    expect(column(update, "worldWeight")).toEqual([
      [0, 0, 0, w0, w0],
      [0, 0, 0],
      [0, 0, 0, w0, w0],
      [0, 0, 0, w1, w1],
    ]);
    expect(column(update, "policyWeight")[0]).toEqual([0, 0, 0.25, 0, 0]);
    expect(column(update, "advantage").map((values) => values[2])).toEqual([1, 2, 3, 4]);
    expect(column(update, "oldLogprob")[1]).toEqual([0, 0, Math.fround(L(0.99))]);
  });

  it("summarises the update, broken episodes apart", () => {
    const { meanActionEntropy, ...summary } = prepare().summary;
    expect(summary).toEqual({
      groups: 2,
      episodes: 3,
      brokenEpisodes: 1,
      actionTokens: 4,
      observationTokens: 6,
      pool: 4,
      selectedShare: 0.75,
      meanLambda: 0.75,
      cut: 0,
    });
    const entropy = [0.4, 0.99, 0.5, 0.35].reduce((sum, q) => sum - q * L(q), 0) / 4;
    expect(meanActionEntropy).toBeCloseTo(entropy, 12);
  });

  it("off: observations are dropped and there is no world weight", () => {
    const update = prepare({ loss: "off" }, { maxReturn: 0 });
    const { sequences, lambdas, summary } = update;
    expect(sequences.map(({ ids }) => ids.length)).toEqual([3, 3, 3, 3]);
    expect(Object.keys(sequences[0]!.inputs)).not.toContain("worldWeight");
    expect([lambdas, selectedOf(update).some(Boolean)]).toEqual([[], false]);
    expect(summary).toMatchObject({ observationTokens: 0, selectedShare: 0, meanLambda: 0 });
  });

  it("a group that always wins has λ = 0, and its observations are dropped too", () => {
    const winners = groupsOf([[{ steps: [step(0.5, 10)] }], [{ steps: [step(0.5)] }]]);
    const update = prepareUpdate(
      winners,
      { advantages: [[[1]], [[1]]] },
      {
        paw: pawOptions().parse({ alpha: 1 }),
        aggregation: "token-mean",
        maxReturn: 10,
      },
    );
    expect(update.lambdas).toEqual([0, 1]);
    expect(update.sequences.map(({ ids }) => ids.length)).toEqual([3, 5]);
    expect(update.sequences[1]!.inputs.worldWeight![4]).toBe(0.25);
  });

  it("fixed λ, token mean, α = 1", () => {
    const update = prepare({ lambda: 0.1, aggregation: "token-mean", alpha: 1 });
    expect(update.lambdas).toEqual([0.1, 0.1]);
    expect(
      column(update, "worldWeight")
        .flat()
        .filter((w) => w > 0),
    ).toEqual(new Array(8).fill(Math.fround(0.1 / 8)));
  });

  it("selects by full entropy if the engine reports it", () => {
    const entropies = [1, 5, 2, 3].map((h) => Float32Array.of(0, 0, h));
    const update = prepare({ entropy: "full", alpha: 0.5 }, { results: { entropies } });
    expect(update.transitions.map(({ entropy }) => entropy)).toEqual([1, 5, 2, 3]);
    expect(selectedOf(update)).toEqual([false, true, false, true]);
    expect(() => prepare({ entropy: "full" })).toThrow(/ask the engine for them/);
  });

  it("each trajectory is its own group with PPO", () => {
    const values = new Array(4).fill(Float32Array.of(0, 0, 7));
    const table = {
      ...advantages,
      returns: [
        [[[5], [6]], [[7]]],
        [[], [[8]]],
      ],
    };
    const update = prepareUpdate(groups, table, {
      paw: pawOptions().parse({ alpha: 1 }),
      aggregation: "token-mean",
      maxReturn: 10,
      ownGroups: true,
      results: { values },
    });
    // Episodes return 10, 0, broken, 0; the first has nothing left to learn. |G| = 3.
    expect(update.lambdas).toEqual([0, 1, 0, 1]);
    expect(update.summary).toMatchObject({ groups: 3, meanLambda: 2 / 3, brokenEpisodes: 1 });
    expect(column(update, "worldWeight")[2]![4]).toBeCloseTo(1 / (3 * 1 * 2), 7);
    expect(column(update, "oldValue").map((v) => v[2])).toEqual([7, 7, 7, 7]);
    expect(column(update, "targetReturn").map((v) => v[2])).toEqual([5, 6, 7, 8]);
  });

  it("takes advantages per token, and log-probabilities of the engine", () => {
    const one = groupsOf([[{ steps: [{ action: [-1, -2] }] }]]);
    const update = prepareUpdate(
      one,
      { advantages: [[[[10, 20]]]] },
      {
        paw: pawOptions().parse({ loss: "off" }),
        aggregation: "token-mean",
        maxReturn: 10,
        results: {
          oldLogprobs: [Float32Array.of(0, 0, -3, -4)],
          referenceLogprobs: [Float32Array.of(0, 0, -5, -6)],
        },
      },
    );
    expect(column(update, "advantage")).toEqual([[0, 0, 10, 20]]);
    expect(column(update, "oldLogprob")).toEqual([[0, 0, -3, -4]]);
    // Then the recorded ones belong to a separate sampler.
    expect(column(update, "samplerLogprob")).toEqual([[0, 0, -1, -2]]);
    expect(prepare().sequences[0]!.inputs).not.toHaveProperty("samplerLogprob");
    expect(column(update, "referenceLogprob")).toEqual([[0, 0, -5, -6]]);
    expect(() => prepare({}, { results: { oldLogprobs: [] } })).toThrow(
      /oldLogprobs are for 0 sequences; expected one for each of 4 transitions/,
    );
  });

  it("at a temperature, takes the log-probabilities of the distribution that was sampled", () => {
    const at = (temperature: number | undefined, recorded: boolean) => {
      const [group] = groupsOf([[{ steps: [{ action: [L(0.5), L(0.5)] }] }]]);
      const [source] = group!.episodes;
      const [only] = source!.steps;
      const sequence = {
        ...only!.sequence!,
        ...(temperature !== undefined && { temperature }),
        ...(recorded && { sampledLogprobs: [L(0.8), L(0.9)] }),
      };
      return [{ ...group!, episodes: [{ ...source!, steps: [{ ...only!, sequence }] }] }];
    };
    const prepared = (temperature: number | undefined, recorded = true, results = {}) =>
      prepareUpdate(
        at(temperature, recorded),
        { advantages: [[[1]]] },
        {
          paw: pawOptions().parse({ alpha: 1 }),
          aggregation: "token-mean",
          maxReturn: 10,
          results,
        },
      );
    const tempered = prepared(0.6);
    const [sequence] = tempered.sequences;
    expect(Array.from(sequence!.temperatures!)).toEqual(
      Array.from(Float32Array.from([1, 1, 0.6, 0.6, 1, 1])),
    );
    const old = (update: typeof tempered) =>
      Array.from(update.sequences[0]!.inputs.oldLogprob!).slice(2, 4).map(Math.exp);
    expect(old(tempered)).toEqual([expect.closeTo(0.8, 6), expect.closeTo(0.9, 6)]);
    expect(tempered.transitions[0]!.entropy).toBeCloseTo(-(0.8 * L(0.8) + 0.9 * L(0.9)) / 2, 10);
    // Older records without a temperature were learnt from at 1, whatever they were sampled at.
    const plain = prepared(undefined);
    expect(plain.sequences[0]).not.toHaveProperty("temperatures");
    expect(old(plain)).toEqual([expect.closeTo(0.5, 6), expect.closeTo(0.5, 6)]);
    // Log-probabilities that were not recorded are required from the engine.
    const oldLogprobs = [[0, 0, L(0.7), L(0.7)]];
    const scored = prepared(0.6, false, { oldLogprobs });
    expect(old(scored)).toEqual([expect.closeTo(0.7, 6), expect.closeTo(0.7, 6)]);
    expect(scored.transitions[0]!.entropy).toBeCloseTo(-0.7 * L(0.7), 6);
    expect(() => prepared(0.6, false)).toThrow(/have no log-probabilities/);
  });

  it("transitions without an observation are not in the pool", () => {
    const mute = { action: [L(0.4)], observation: 0 };
    const table = { advantages: [[[1, 1, 1]]] };
    const options = {
      paw: pawOptions().parse({}),
      aggregation: "token-mean",
      maxReturn: 10,
    } as const;
    const some = groupsOf([[{ steps: [mute, step(0.9), step(0.8)] }]]);
    const update = prepareUpdate(some, table, options);
    expect(selectedOf(update)).toEqual([false, true, true]);
    expect(update.summary.pool).toBe(2);
    const none = groupsOf([[{ steps: [mute, mute, mute] }]]);
    expect(() => prepareUpdate(none, table, options)).toThrow(/no step has observation tokens/);
  });

  it("truncates observations at the engine's limit and says so", () => {
    const update = prepare({}, { maxTokens: 4 });
    expect(update.sequences.map(({ ids }) => ids.length)).toEqual([4, 3, 4, 4]);
    expect(update.summary.cut).toBe(3);
    expect(column(update, "worldWeight")[3]![3]).toBe(1 / (2 * 1 * 1));
  });

  it("of only broken episodes is empty", () => {
    const broken = groupsOf([[{ steps: [step(0.5)], broken: true }]]);
    const options = {
      paw: pawOptions().parse({}),
      aggregation: "token-mean",
      maxReturn: 10,
    } as const;
    const update = prepareUpdate(broken, { advantages: [[[]]] }, options);
    expect(update.sequences).toEqual([]);
    expect(update.summary).toMatchObject({ groups: 0, brokenEpisodes: 1, meanLambda: 0 });
  });
});

describe("scaleWorld", () => {
  it("scales the world model's part of an update, and nothing else", () => {
    const update = prepare();
    const scaled = scaleWorld(update, 0.25);
    expect(scaled.lambdas).toEqual(update.lambdas.map((lambda) => lambda / 4));
    expect(scaled.summary).toEqual({
      ...update.summary,
      meanLambda: update.summary.meanLambda / 4,
    });
    update.sequences.forEach(({ inputs }, i) => {
      const { worldWeight, ...rest } = scaled.sequences[i]!.inputs;
      expect({ ...rest, worldWeight: inputs.worldWeight }).toEqual(inputs);
      expect(Array.from(worldWeight!)).toEqual(Array.from(inputs.worldWeight!, (w) => w / 4));
    });
    const off = prepare({ loss: "off" });
    expect(scaleWorld(off, 0.5).sequences).toEqual(off.sequences);
  });
});

describe("updateObjective", () => {
  const build = (given: object, loss: PawOptions["loss"], critic = false) =>
    updateObjective(objectiveOptions().parse(given), pawOptions().parse({ loss }), { critic });

  it("asks for what its terms need and no more", () => {
    const bare = build({ kl: 0, entropy: 0 }, "off");
    expect(inputsOf(...expressionsOf(bare))).toEqual(["advantage", "oldLogprob", "policyWeight"]);
    expect(quantitiesOf(...expressionsOf(bare))).toEqual(["logprob"]);
    const corrected = updateObjective(
      objectiveOptions().parse({ kl: 0, entropy: 0 }),
      pawOptions().parse({ loss: "off" }),
      { critic: false, sampler: true },
    );
    expect(inputsOf(...expressionsOf(corrected))).toContain("samplerLogprob");
    const full = build({}, "cmae", true);
    expect(inputsOf(...expressionsOf(full))).toHaveLength(7);
    expect(quantitiesOf(...expressionsOf(full))).toHaveLength(3);
  });

  it("over prepared sequences is the paper's loss, computed the long way", () => {
    const p = 0.1;
    const update = prepare();
    const objective = build({ kl: 0, entropy: 0 }, "cmae");
    let loss = 0;
    for (const { ids, targets, inputs } of update.sequences) {
      const isTarget = (_: unknown, i: number) => targets![i] === 1;
      const pick = (values: ArrayLike<number>) => Array.from(values).filter(isTarget);
      const columns = Object.entries(inputs).map(([name, v]) => [name, pick(v)] as const);
      loss += evaluateObjective(objective, {
        count: pick(ids).length,
        // Action tokens as sampled, every observation token with probability 0.1.
        quantities: { logprob: pick(inputs.oldLogprob!).map((l) => (l === 0 ? L(p) : l)) },
        inputs: Object.fromEntries(columns),
      }).loss;
    }
    const policy = -(1 + 2 + 3 + 4) / 4;
    // Each selected transition has the loss 1 − p; groups weigh 0.5 and 1, two groups.
    const world = (0.5 * (1 - p) + 1 * (1 - p)) / 2;
    expect(loss).toBeCloseTo(policy + world, 6);
  });
});
