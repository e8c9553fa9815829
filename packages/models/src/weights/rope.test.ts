import { expect, it } from "vitest";
import { formatRopeScaling, parseRopeScaling, type RopeScaling, ropeFrequencies } from "./rope.js";

const MODEL = { maxContext: 640, originalContext: undefined };

function scalingOf(rope: Readonly<Record<string, unknown>>): RopeScaling | undefined {
  const parsed = parseRopeScaling(rope, MODEL);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed.scaling;
}

const LLAMA3 = {
  rope_type: "llama3",
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 8192,
};

it("divides only the slow frequencies of Llama 3.1, and interpolates between", () => {
  const scaled = ropeFrequencies(500_000, 64, scalingOf(LLAMA3));
  const plain = ropeFrequencies(500_000, 64, undefined);
  const ratios = Array.from(plain, (frequency, i) => frequency / scaled[i]!);
  // A frequency that turns 4 times or more in 8,192 positions stays; one that turns less than once
  // is divided by 8.
  const turns = (i: number) => (8192 * plain[i]!) / (2 * Math.PI);
  ratios.forEach((ratio, i) => {
    if (turns(i) >= 4) expect(ratio).toBe(1);
    else if (turns(i) <= 1) expect(ratio).toBeCloseTo(8, 5);
    else expect(ratio).toBeGreaterThan(1);
  });
  expect(ratios.filter((ratio) => ratio > 1 && ratio < 7.99).length).toBeGreaterThan(3);
  expect([...ratios].sort((a, b) => a - b)).toEqual(ratios);
});

it("divides all frequencies by a linear factor, and none by a dynamic one within the context", () => {
  const plain = ropeFrequencies(10_000, 4, undefined);
  expect([...plain]).toEqual([1, 0.1, 0.01, 0.001].map(Math.fround));
  expect([...ropeFrequencies(10_000, 4, { type: "linear", factor: 4 })]).toEqual(
    [1, 0.1, 0.01, 0.001].map((x) => Math.fround(x / 4)),
  );
  expect(ropeFrequencies(10_000, 4, { type: "dynamic", factor: 4 })).toEqual(plain);
});

it("ramps from the fast to the slow frequencies of YaRN", () => {
  // Pairs turn 32 times and once in 4,096 positions at 20.9 and 44.9 of 64: a ramp from 20 to 46.
  const yarn = scalingOf({ rope_type: "yarn", factor: 4, original_max_position_embeddings: 4096 });
  const scaled = ropeFrequencies(10_000, 64, yarn);
  const ratio = (i: number) => 10_000 ** (-i / 64) / scaled[i]!;
  for (const i of [0, 10, 20]) expect(ratio(i)).toBeCloseTo(1, 6);
  expect(1 / ratio(33)).toBeCloseTo(0.5 + 0.5 / 4, 6);
  for (const i of [46, 60]) expect(ratio(i)).toBeCloseTo(4, 5);
  expect(yarn).toMatchObject({ attentionFactor: 0.1 * Math.log(4) + 1 });
});

it.each([
  { type: "linear", factor: 2 },
  { type: "dynamic", factor: 2.5 },
  {
    type: "llama3",
    factor: 32,
    lowFrequencyFactor: 1,
    highFrequencyFactor: 4,
    originalContext: 8192,
  },
  {
    type: "yarn",
    factor: 4,
    originalContext: 32_768,
    attentionFactor: 1.25,
    betaFast: 24,
    betaSlow: 2,
    truncate: false,
  },
] satisfies RopeScaling[])("survives a round trip: %o", (scaling) => {
  expect(scalingOf(formatRopeScaling(scaling))).toEqual(scaling);
});

it("takes the original context from where it is given", () => {
  const { original_max_position_embeddings: _, ...rest } = LLAMA3;
  expect(scalingOf(LLAMA3)).toMatchObject({ originalContext: 8192 });
  expect(scalingOf(rest)).toMatchObject({ originalContext: 640 });
  expect(parseRopeScaling(LLAMA3, { ...MODEL, originalContext: 512 })).toMatchObject({
    scaling: { originalContext: 512 },
  });
});

it("derives the factor of YaRN's tables from both strengths", () => {
  const rope = { rope_type: "yarn", factor: 40, mscale: 1, mscale_all_dim: 0.5 };
  const expected = (0.1 * Math.log(40) + 1) / (0.05 * Math.log(40) + 1);
  expect(scalingOf(rope)).toMatchObject({ attentionFactor: expected, betaFast: 32, betaSlow: 1 });
  expect(scalingOf({ ...rope, attention_factor: 1.5 })).toMatchObject({ attentionFactor: 1.5 });
});

it.each([
  [
    { rope_type: "longrope" },
    /type "longrope"; only linear, dynamic, llama3, yarn and default are/,
  ],
  [{ type: "linear" }, /rope_scaling\.factor: .*expected number/],
  [{ type: "linear", factor: 0.5 }, /rope_scaling\.factor/],
  [{ ...LLAMA3, low_freq_factor: undefined }, /rope_scaling\.low_freq_factor/],
  [{ ...LLAMA3, high_freq_factor: 1 }, /low_freq_factor: must be less than high_freq_factor/],
  [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor 0\.5; only whole heads are/],
])("refuses %o", (rope, message) => {
  expect(() => scalingOf(rope as Readonly<Record<string, unknown>>)).toThrow(message);
});
