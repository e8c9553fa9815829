import { describe, expect, it } from "vitest";
import type { TrainSequence } from "../engine/engine.js";
import { pawOptions } from "../objectives/paw-options.js";
import { pawAt, type TargetTokenizer } from "./targets.js";
import { prepareUpdate } from "./update.js";
import { groupsOf, ids } from "./update-testing.js";

/** Four steps of one action token each, of decreasing entropy; their observations have 2, 3, 1, 2 tokens. */
const step = (logprob: number, observation: number) => ({ action: [logprob], observation });
const groups = groupsOf([
  [{ steps: [step(-1, 2), step(-1.5, 3)] }, { steps: [step(-2, 1), step(-3, 2)] }],
]);
const advantages = {
  advantages: [
    [
      [1, 1],
      [1, 1],
    ],
  ],
};
/** Writes the id 300 as "a", 310 as "b", and so on; a second letter for the place in the text. */
const tokenizer: TargetTokenizer = {
  decode: (given) =>
    [...given].map((id) => `${"abcdefg"[((id - 300) / 10) | 0]}${id % 10} `).join(""),
  encode: (text) => text.split(" ").map(Number),
};
const prepare = (paw: object) =>
  prepareUpdate(groups, advantages, {
    paw: pawOptions().parse({ loss: "cmae", lambda: 1, ...paw }),
    maxReturn: 10,
    tokenizer,
  });
const weightsOf = (inputs: TrainSequence["inputs"]): readonly number[] =>
  Array.from(inputs.worldWeight!);
/** What each sequence is to predict. */
const learnt = (paw: object): (readonly number[])[] =>
  prepare(paw).sequences.map(({ ids: all, inputs }) =>
    Array.from(all).filter((_, at) => inputs.worldWeight![at]! > 0),
  );

describe("paw.targets", () => {
  it("own: what followed", () => {
    const own = [ids(300, 0, 2), ids(300, 1, 3), ids(300, 0, 1), ids(300, 1, 2)];
    expect(learnt({ alpha: 1 })).toEqual(own);
  });

  it("shuffled: what followed the selected transition half of them further on", () => {
    const shuffled = [ids(300, 0, 1), ids(300, 1, 2), ids(300, 0, 2), ids(300, 1, 3)];
    expect(learnt({ alpha: 1, targets: "shuffled" })).toEqual(shuffled);
    // The actions, their weights and the selection are as without it.
    const [own, other] = [prepare({ alpha: 0.5 }), prepare({ alpha: 0.5, targets: "shuffled" })];
    expect(other.transitions).toEqual(own.transitions);
    expect(other.sequences.map(({ inputs }) => inputs.policyWeight![0])).toEqual(
      own.sequences.map(({ inputs }) => inputs.policyWeight![0]),
    );
    // Every transition still weighs the same: λ / (|G|·|S_g|·|o|), summed over its tokens.
    for (const { inputs } of other.sequences.filter(({ inputs }) =>
      weightsOf(inputs).some((w) => w > 0),
    ))
      expect(weightsOf(inputs).reduce((sum, w) => sum + w, 0)).toBeCloseTo(1 / 2);
  });

  it("texts: one after another", () => {
    expect(learnt({ alpha: 1, targets: "7 8\n9\n" })).toEqual([[7, 8], [9], [7, 8], [9]]);
  });

  it("refuses what is neither a kind nor texts, and reads no file", () => {
    for (const targets of ["shufled", "package.json", ""])
      expect(() => prepare({ targets })).toThrow(/expected own, shuffled or texts/);
  });
});

describe("paw.until", () => {
  it("ends an observation before the match, and leaves one out that begins with it", () => {
    // The observations read "a0 a1 ", "b0 b1 b2 ", "a0 ", "b0 b1 ".
    expect(learnt({ alpha: 1, until: "b1|a0 $" })).toEqual([
      ids(300, 0, 2),
      ids(300, 1, 1),
      [],
      ids(300, 1, 1),
    ]);
  });

  it("must be a regular expression", () => {
    expect(() => pawOptions().parse({ loss: "cmae", until: "(" })).toThrow(/regular expression/);
  });
});

describe("paw.skip", () => {
  it("learns an observation behind the match at its beginning, and nothing of one that matches", () => {
    // The observations read "a0 a1 ", "b0 b1 b2 ", "a0 ", "b0 b1 ".
    expect(learnt({ alpha: 1, skip: "b0 b1|a0|b1" })).toEqual([[301], [312], [], []]);
  });

  it("must be a regular expression", () => {
    expect(() => pawOptions().parse({ loss: "cmae", skip: "(" })).toThrow(/regular expression/);
  });
});

describe("expressions that never end", () => {
  it.each(["until", "skip"])("are broken off by name (paw.%s)", (setting) => {
    const paw = pawOptions().parse({ loss: "cmae", lambda: 1, alpha: 1, [setting]: "(a+)+b" });
    const endless = { ...tokenizer, decode: () => "a".repeat(40) };
    expect(() =>
      prepareUpdate(groups, advantages, { paw, maxReturn: 10, tokenizer: endless }),
    ).toThrow(`paw.${setting}: the expression looked at one observation for more than a second`);
  });
});

describe("paw.every", () => {
  it("learns observations in every so many updates", () => {
    const paw = pawOptions().parse({ loss: "ce", lambda: 0.05, every: 4 });
    expect([0, 1, 2, 3, 4, 7].map((update) => pawAt(paw, update).lambda)).toEqual([
      0, 0, 0, 0.05, 0, 0.05,
    ]);
    const { sequences } = prepare({ ...pawAt(paw, 0) });
    expect(sequences.every(({ inputs }) => weightsOf(inputs).every((w) => w === 0))).toBe(true);
  });
});
