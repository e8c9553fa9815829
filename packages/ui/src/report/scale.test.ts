import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapeHtml, linearScale, shortNumber, shortPercent, ticks, wholeTicks } from "./scale.js";

describe("ticks", () => {
  it.each([
    [[0, 1], 4, [0, 0.5, 1]],
    [[0, 0.3], 3, [0, 0.1, 0.2, 0.3]],
    [[3, 97], 4, [0, 50, 100]],
    [[-0.02, 0.05], 4, [-0.02, 0, 0.02, 0.04, 0.06]],
    [[0, 0], 4, [-1, -0.5, 0, 0.5, 1]],
    [[1e-7, 3e-7], 2, [1e-7, 2e-7, 3e-7]],
  ] as const)("of %j about %i are round numbers around it", (range, count, expected) => {
    expect(ticks(range, count)).toEqual(expected);
  });

  it("cover any range, rise, and are not many", () => {
    const number = fc.double({ min: -1e9, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(number, number, fc.integer({ min: 2, max: 8 }), (a, b, count) => {
        const range = [Math.min(a, b), Math.max(a, b)] as const;
        fc.pre(range[1] - range[0] > 1e-6 * Math.max(1, Math.abs(a), Math.abs(b)));
        const marks = ticks(range, count);
        const slack = 1e-6 * (range[1] - range[0]);
        expect(marks[0]).toBeLessThanOrEqual(range[0] + slack);
        expect(marks.at(-1)).toBeGreaterThanOrEqual(range[1] - slack);
        expect(marks.length).toBeLessThanOrEqual(count + 3);
        for (let i = 1; i < marks.length; i++) expect(marks[i]).toBeGreaterThan(marks[i - 1]!);
      }),
    );
  });

  it("of counts are integers", () => {
    expect(wholeTicks([0, 3], 6)).toEqual([0, 1, 2, 3]);
    expect(wholeTicks([0, 40], 6)).toEqual([0, 10, 20, 30, 40]);
    expect(wholeTicks([1, 1], 6)).toEqual([1]);
  });
});

it("maps numbers to coordinates, a single number to the middle", () => {
  const place = linearScale([0, 10], [100, 0]);
  expect([place(0), place(2.5), place(10)]).toEqual([100, 75, 0]);
  expect(linearScale([3, 3], [0, 100])(3)).toBe(50);
});

it("formats numbers briefly", () => {
  expect([0, 0.12345, 12.0, 1234.56, 23_456, 2e6, 1.5e-5, Number.NaN].map(shortNumber)).toEqual([
    "0",
    "0.1235",
    "12",
    "1235",
    "23.46k",
    "2M",
    "1.5e-5",
    "–",
  ]);
  expect([0, 0.125, 1, Number.NaN].map(shortPercent)).toEqual(["0 %", "12.5 %", "100 %", "–"]);
});

it("leaves no character of any text with a meaning in HTML", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(escapeHtml(text).replace(/&(amp|lt|gt|quot|#39);/g, "")).not.toMatch(/[&<>"']/);
    }),
    { numRuns: 200 },
  );
  expect(escapeHtml(`<a b="c">'&amp;`)).toBe("&lt;a b=&quot;c&quot;&gt;&#39;&amp;amp;");
});
