/** The cost model of bench/cost.ts: its counts, what it was fitted to, and how far it is off elsewhere. */
import { expect, it } from "vitest";
import {
  memoryOf,
  paper,
  parametersOf,
  points,
  SHAPES,
  secondsOf,
  secondsOn,
  volumeOf,
} from "../bench/cost.js";

const large = SHAPES["Qwen2.5-1.5B"];
const GIB = 2 ** 30;

it("knows the published numbers of parameters", () => {
  expect(parametersOf(large)).toBe(1_543_714_304);
  expect(parametersOf(SHAPES["Qwen2.5-0.5B"])).toBe(494_032_768);
  expect(parametersOf(SHAPES["SmolLM2-135M"])).toBe(134_515_008);
});

it("has the memory of docs/gpu.md", () => {
  // Without what CUDA itself takes, which PyTorch does not count.
  const gib = (tokens: number) => memoryOf(large, 0, tokens, false) / GIB - 0.8;
  expect(Math.abs(gib(8 * 1024) / 40.7 - 1)).toBeLessThan(0.02);
  expect(Math.abs(gib(150_000) / 58.9 - 1)).toBeLessThan(0.06);
  const small = memoryOf(SHAPES["SmolLM2-135M"], 128 * 1500, 128 * 1500, false);
  expect(Math.abs(small / GIB / 9.92 - 1)).toBeLessThan(0.1);
});

it("computes what is learnt three times, and what is cached not at all", () => {
  const pass = { sequences: 64, length: 1000, targets: 100 };
  const [score, learn] = (["score", "learn"] as const).map((kind) =>
    secondsOf(large, { ...pass, do: kind, steps: 0 }),
  );
  expect(learn! / score!).toBeCloseTo(3, 9);
  const sample = { do: "sample", prompts: 64, prompt: 1000, fresh: 0 } as const;
  const cached = secondsOf(large, { ...sample, cached: 500 }) / secondsOf(large, sample);
  expect(cached).toBeGreaterThan(0.5);
  expect(cached).toBeLessThan(0.6);
});

it("exchanges nothing on one GPU, and FSDP's volume on several", () => {
  expect(volumeOf(large, 1)).toEqual({ forward: 0, all: 0 });
  const [parameters, embedding] = [parametersOf(large), 151_936 * 1536];
  expect(volumeOf(large, 4)).toEqual({
    forward: (3 / 4) * 2 * parameters,
    all: (3 / 4) * (8 * parameters - 2 * embedding),
  });
  const [one, hidden, exposed] = [
    secondsOn(paper),
    secondsOn(paper, 8, "network"),
    secondsOn(paper, 8, "network", false),
  ];
  expect(hidden.total).toBeLessThan(exposed.total);
  expect(exposed.total).toBeLessThan(one.total);
});

it("takes as long as was measured where it was fitted, and elsewhere within three tenths", () => {
  const rows = points();
  expect(rows.filter(({ fits }) => fits)).toHaveLength(4);
  for (const { what, error, fits } of rows.filter((row) => !row.what.includes("older sampler")))
    expect(Math.abs(error), what).toBeLessThan(fits ? 0.005 : 0.3);
});
