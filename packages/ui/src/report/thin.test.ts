import { expect, it } from "vitest";
import { columnsOf, thinned } from "./thin.js";

const numbers = (length: number, of: (i: number) => number | null) =>
  Array.from({ length }, (_, i) => of(i));

it("averages neighbours and keeps their range; evaluations stay as they were measured", () => {
  const table = {
    update: numbers(7, (i) => i) as number[],
    columns: {
      "train.return": [1, 3, null, 5, 2, 4, 9],
      "eval.a.success": [0.1, 0.2, null, 0.4, null, null, null],
    },
  };
  expect(thinned(table, 7)).toBe(table);
  expect(thinned(table, 3)).toEqual({
    update: [2, 5, 6],
    columns: {
      "train.return": [2, 11 / 3, 9].map((n) => Number(n.toPrecision(7))),
      "eval.a.success": [0.1, 0.4, null],
    },
    bands: { "train.return": { low: [1, 2, 9], high: [3, 5, 9] } },
    every: 3,
  });
});

it("rounds to seven digits, but not whole numbers", () => {
  const values = Array.from({ length: 4000 }, (_, i) => Math.sin(i) * 10 ** ((i % 30) - 20));
  const lines = values.map((value, update) => ({ update, value, whole: 123_456_789 + update }));
  const { columns } = columnsOf(lines);
  expect(columns.value).toEqual(values.map((value) => Number(value.toPrecision(7))));
  expect(columns.whole).toEqual(lines.map(({ whole }) => whole));
});

it("keeps gaps, and never more rows than asked for", () => {
  const update = numbers(10_001, (i) => i - 1) as number[];
  const { columns, update: kept } = thinned(
    { update, columns: { late: numbers(10_001, (i) => (i < 5000 ? null : i)) } },
    100,
  );
  expect(kept.length).toBeLessThanOrEqual(100);
  expect(kept.at(-1)).toBe(9999);
  expect(columns.late![0]).toBeNull();
  expect(columns.late!.at(-1)).toBeGreaterThan(9900);
});
