import { expect, it } from "vitest";
import { mergeContinuations } from "./merge.js";

/** Of a step, the tokens from the first target on. */
const sequence = (ids: number[], targets: number[], weight: number[]) => {
  const start = targets.indexOf(1);
  return {
    ids,
    start,
    targets: Uint8Array.from(targets.slice(start)),
    inputs: { weight: Float32Array.from(weight.slice(start)) },
  };
};

it("merges steps that continue one another, with the targets and inputs of each", () => {
  const merged = mergeContinuations([
    sequence([1, 2, 3, 4], [0, 0, 1, 1], [0, 0, 5, 6]),
    sequence([1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 7, 8]),
    sequence([1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 9]),
    sequence([1, 2, 9, 9, 9], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1]),
  ]);
  expect(merged).toHaveLength(2);
  expect(merged[0]).toMatchObject({ ids: [1, 2, 3, 4, 5, 6, 7], steps: 3 });
  expect([...(merged[0]!.targets as Uint8Array)]).toEqual([0, 0, 1, 1, 1, 1, 1]);
  expect([...(merged[0]!.inputs.weight as Float32Array)]).toEqual([0, 0, 5, 6, 7, 8, 9]);
  expect(merged[1]).toMatchObject({ ids: [1, 2, 9, 9, 9], steps: 1 });
});

it("keeps sequences apart that share a target or do not continue", () => {
  const first = sequence([1, 2, 3], [0, 0, 1], [0, 0, 1]);
  expect(
    mergeContinuations([first, sequence([1, 2, 3, 4], [0, 0, 1, 1], [0, 0, 2, 2])]),
  ).toHaveLength(2);
  expect(
    mergeContinuations([first, sequence([1, 2, 4, 4], [0, 0, 0, 1], [0, 0, 0, 2])]),
  ).toHaveLength(2);
  expect(mergeContinuations([first, first])).toHaveLength(2);
});
