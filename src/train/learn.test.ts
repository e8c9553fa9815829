import { describe, expect, it } from "vitest";
import { pawOptions } from "../objectives/paw-options.js";
import { prepareUpdate } from "../update/update.js";
import { groupsOf } from "../update/update-testing.js";
import { minibatches } from "./learn.js";

/** Twelve groups of two episodes of one step. */
const groups = groupsOf(
  Array.from({ length: 12 }, () => [{ steps: [{ action: [-1] }] }, { steps: [{ action: [-1] }] }]),
);
const update = prepareUpdate(
  groups,
  { advantages: groups.map((_, g) => [[g], [g + 0.5]]) },
  { paw: pawOptions().parse({ loss: "off" }), aggregation: "token-mean", maxReturn: 10 },
);
/** The advantages of each mini-batch's sequences: all differ, so they identify the sequences. */
const order = (seed: number) =>
  minibatches(update, { minibatch: 8, aggregation: "token-mean", seed }).map((batch) =>
    batch.map(({ inputs }) => Math.max(...Array.from(inputs.advantage!))),
  );

describe("mini-batches", () => {
  it("mix the groups: sequences are shuffled before they are split", () => {
    const inOrder = update.sequences.map(({ inputs }) =>
      Math.max(...Array.from(inputs.advantage!)),
    );
    const batches = order(0);
    expect(batches.map((batch) => batch.length)).toEqual([8, 8, 8]);
    expect(batches.flat().sort((a, b) => a - b)).toEqual(inOrder);
    for (const [i, batch] of batches.entries()) {
      const [low, high] = [Math.min(...batch), Math.max(...batch)];
      // Split in order, a batch would be four neighbouring groups.
      expect(high - low, `mini-batch ${i}`).toBeGreaterThan(6);
    }
  });

  it("are the same for the same seed and differ for another", () => {
    expect(order(1)).toEqual(order(1));
    expect(order(1)).not.toEqual(order(2));
  });
});
