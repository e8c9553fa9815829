import { describe, expect, it } from "vitest";
import { pawOptions } from "../objectives/paw-options.js";
import type { Counterfactual } from "./counterfactuals.js";
import { prepareUpdate } from "./update.js";
import { groupsOf, ids } from "./update-testing.js";

/** Two groups of an episode with steps of increasing entropy; observations of 2, 3 and 4 tokens. */
const step = (logprob: number, observation: number) => ({ action: [logprob], observation });
const steps = [step(-3, 2), step(-2, 3), step(-1, 4)];
const groups = groupsOf([[{ steps }], [{ steps }]]);
const advantages = { advantages: [[[1, 1, 1]], [[1, 1, 1]]] };

/** What an action of one token would have brought in this many tokens. */
function imagined(group: number, tokens: number, valid = true): Counterfactual {
  const all = [1, 2, 3, ...ids(300, 9, tokens)];
  const spans = [
    { kind: "prompt" as const, start: 0, end: 2, origin: "test" },
    { kind: "action" as const, start: 2, end: 3, origin: "test" },
    { kind: "observation" as const, start: 3, end: all.length, origin: "test" },
  ];
  return { group, episode: 0, valid, sequence: { ids: all, spans } };
}

const prepare = (counterfactuals: readonly Counterfactual[] | undefined, paw: object = {}) =>
  prepareUpdate(groups, advantages, {
    paw: pawOptions().parse({ loss: "ce", alpha: 1, lambda: 1, counterfactual: 1, ...paw }),
    maxReturn: 10,
    ...(counterfactuals && { counterfactuals }),
  });
/** The weights of observation tokens, by what is to be predicted. */
const learnt = ({ sequences }: ReturnType<typeof prepare>) =>
  sequences.map((sequence) =>
    Array.from(sequence.inputs.worldWeight!)
      .map((weight, at) => [sequence.ids[at]!, weight] as const)
      .filter(([, weight]) => weight > 0),
  );
const total = (update: ReturnType<typeof prepare>): number =>
  learnt(update)
    .flat()
    .reduce((sum, [, weight]) => sum + weight, 0);

describe("counterfactual targets", () => {
  it("take the place of the least uncertain observations of their group, at the same weight in all", () => {
    const without = prepare([]);
    const update = prepare([imagined(0, 2)]);
    const own = learnt(update);
    expect(own[0]).toEqual([]);
    expect(own[1]!.map(([id]) => id)).toEqual(ids(300, 1, 3));
    expect(own[3]!.map(([id]) => id)).toEqual(ids(300, 0, 2));
    expect(own.at(-1)!.map(([id]) => id)).toEqual(ids(300, 9, 2));
    expect(update.summary).toMatchObject({ observationTokens: 18, counterfactuals: 1 });
    expect(without.summary.observationTokens).toBe(18);
    expect(total(update)).toBeCloseTo(total(without));
  });

  it("are no steps, teach the policy nothing, and leave the selection as it is", () => {
    const [without, update] = [prepare([]), prepare([imagined(1, 5, false)])];
    const last = update.sequences.at(-1)!;
    expect(last.steps).toBe(0);
    expect(Array.from(last.inputs.policyWeight!)).toEqual(Array.from(last.ids).map(() => 0));
    expect(Object.keys(last.inputs).sort()).toEqual(
      Object.keys(without.sequences[0]!.inputs).sort(),
    );
    expect(update.transitions).toEqual(without.transitions);
    expect(update.summary.observationTokens).toBeLessThanOrEqual(18);
  });

  it("are left out where the group's observations weigh nothing, and cut at the longest sequence", () => {
    expect(prepare([imagined(0, 2)], { lambda: 0 }).sequences).toHaveLength(
      prepare([], { lambda: 0 }).sequences.length,
    );
    const options = { paw: { loss: "ce" as const, counterfactual: 1 }, maxReturn: 10 };
    const cut = prepareUpdate(groups, advantages, {
      ...options,
      maxTokens: 5,
      counterfactuals: [imagined(0, 4)],
    });
    expect(cut.sequences.at(-1)!.ids).toHaveLength(5);
  });

  it("follow their episode where each is its own group", () => {
    const two = groupsOf([[{ steps }, { steps }]]);
    const update = prepareUpdate(
      two,
      {
        advantages: [
          [
            [1, 1, 1],
            [1, 1, 1],
          ],
        ],
      },
      {
        paw: { loss: "ce", alpha: 1, lambda: 1, counterfactual: 1 },
        maxReturn: 10,
        ownGroups: true,
        counterfactuals: [{ ...imagined(0, 2), episode: 1 }],
      },
    );
    expect(learnt(update)[3]).toEqual([]);
    expect(learnt(update).flat()).toHaveLength(18);
  });

  it("must be given where they are asked for", () => {
    expect(() => prepare(undefined)).toThrow(/paw.counterfactual needs what was tried/);
  });
});
