import { expect, it } from "vitest";
import { treeOf } from "./branches.js";
import { entryOf } from "./episode-entry.js";
import { rowOfEntry } from "./episode-filter.js";
import { playedEpisode } from "./testing.js";

it("lists, for each state at which an episode was left, what goes on from there", () => {
  const branch = (attempt: number, from: number, step: number) =>
    playedEpisode(0, attempt, { branch: { from, step } });
  const group = [
    playedEpisode(0, 0),
    playedEpisode(0, 1),
    branch(2, 0, 2),
    branch(3, 0, 1),
    branch(4, 0, 2),
    playedEpisode(0, 5),
  ];
  const rows = group.map((episode) =>
    rowOfEntry(entryOf({ ...episode, steps: [] }, { offset: 0, length: 1, line: episode.attempt })),
  );
  const seen = (attempt: number) => {
    const { shared, states } = treeOf(group[attempt]!, group, rows);
    return [shared, ...states.map(({ step, rows }) => [step, rows.map((row) => row.attempt)])];
  };
  expect(seen(0)).toEqual([0, [1, [0, 3]], [2, [0, 2, 4]]]);
  expect(seen(3)).toEqual([1, [1, [0, 3]], [2, [0, 2, 4]]]);
  expect(seen(1)).toEqual([0]);
  expect(seen(5)).toEqual([0]);
});
