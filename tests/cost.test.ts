/** The cost model of bench/cost.ts: its counts, what it was fitted to, and how far it is off elsewhere. */
import { describe, expect, it } from "vitest";
import { volumeOf } from "../bench/cost/fsdp.js";
import { type Machine, secondsOf, solve } from "../bench/cost/machine.js";
import {
  embeddedMachine,
  embeddedPoints,
  gpuMachine,
  gpuPoints,
  predicted,
} from "../bench/cost/machines.js";
import { memoryOf, totalOf, withCuda } from "../bench/cost/memory.js";
import { parametersOf, SHAPES } from "../bench/cost/shape.js";
import type { Act, Learn } from "../bench/cost/task.js";
import { phasesOf, type Update } from "../bench/cost/update.js";
import { wireOf } from "../bench/cost/wire.js";
import { layerWeights, seenPairs, workOf } from "../bench/cost/work.js";
import { recorded } from "../bench/cost.js";

const large = SHAPES["Qwen2.5-1.5B"];
const limits = { batchTokens: 1000, rows: 64, cachedTokens: 1e9 };
const GIB = 2 ** 30;

describe("counts", () => {
  it("knows the published numbers of parameters", () => {
    expect(parametersOf(large)).toBe(1_543_714_304);
    expect(parametersOf(SHAPES["SmolLM2-135M"])).toBe(134_515_008);
  });

  it("counts six operations per weight and token, and attention to earlier tokens", () => {
    const task: Learn = { do: "learn", sequences: 3, length: 40, targets: 7 };
    let expected = 0;
    for (let sequence = 0; sequence < 3; sequence++) {
      expected += 7 * 6 * large.vocabularySize * large.hiddenSize;
      for (let token = 1; token <= 40; token++)
        expected += large.layers * (6 * layerWeights(large) + 3 * 4 * 12 * 128 * token);
    }
    expect(workOf(large, limits, task).passFlops).toBe(expected);
  });

  it("counts a learnt micro-batch as three passes", () => {
    const task: Learn = { do: "learn", sequences: 5, length: 500 };
    expect(workOf(large, limits, task)).toMatchObject({ passes: 9, updates: 1, steps: 0 });
  });

  it("sees every earlier token and itself", () => {
    expect(seenPairs(10, 3)).toBe(11 + 12 + 13);
  });

  it("reads each token of a continued episode once, as one long prompt would", () => {
    const act: Act = {
      do: "act",
      episodes: 4,
      turns: 3,
      first: 10,
      response: 2,
      observation: 5,
    };
    const work = workOf(large, limits, act);
    expect(work.steps).toBe(3 * 2);
    const read = 4 * (10 + 5 + 5);
    const decoded = 4 * 3 * 2;
    const weights = large.layers * layerWeights(large);
    const head = large.vocabularySize * large.hiddenSize;
    // Every token but the last observation's is seen by itself and its followers.
    const pairs = 4 * seenPairs(0, 10 + 5 + 5 + 6);
    expect(work.passFlops + work.stepFlops).toBe(
      2 * weights * (read + decoded) +
        2 * head * (4 * 3 + decoded) +
        4 * large.layers * 12 * 128 * pairs,
    );
  });

  it("reads prompts anew that do not fit into the cache", () => {
    const act: Act = { do: "act", episodes: 4, turns: 9, first: 10, response: 2, observation: 5 };
    const roomy = workOf(large, limits, act);
    const cramped = workOf(large, { ...limits, cachedTokens: 4 * (64 + 40) }, act);
    expect(cramped.passFlops).toBeGreaterThan(1.5 * roomy.passFlops);
    expect(cramped.copied).toBeLessThan(roomy.copied);
    expect(roomy.copied).toBeGreaterThan(0);
  });

  it("decodes rows in as many batches as they need", () => {
    const sample = { do: "sample", prompts: 65, count: 2, prompt: 9, fresh: 4, times: 3 } as const;
    expect(workOf(large, limits, sample).steps).toBe(3 * 3 * 4);
  });
});

describe("an update", () => {
  const update: Update = {
    shape: "tiny",
    episodes: 8,
    steps: 10,
    prompt: 100,
    response: 20,
    observation: 30,
    prompts: "apart",
    reference: true,
    minibatch: 40,
  };

  it("has a sequence per step, or one per episode if steps continue one another", () => {
    expect(phasesOf(update)).toEqual({
      act: { do: "sample", prompts: 8, count: 1, prompt: 100, fresh: 20, times: 10 },
      score: { do: "score", sequences: 80, length: 120, targets: 20 },
      learn: { do: "learn", sequences: 80, length: 150, targets: 50, steps: 2 },
    });
    const { score, learn } = phasesOf({ ...update, prompts: "continued", reference: false });
    expect(score).toBeUndefined();
    expect(learn).toEqual({ do: "learn", sequences: 8, length: 600, targets: 500, steps: 2 });
  });

  it("sends seven packed numbers and an id for each token, and gets one back", async () => {
    const [some, more] = [100, 1100];
    const bytes = async (length: number) => wireOf({ do: "learn", sequences: 1, length });
    const perToken = ((await bytes(more)) - (await bytes(some))) / (more - some);
    // Target, mask, five inputs of PaW's objective and the answer, in base64; the id as text.
    expect(perToken).toBeGreaterThan((8 * 16) / 3 + 5);
    expect(perToken).toBeLessThan((8 * 16) / 3 + 7.5);
  });
});

describe("several GPUs", () => {
  it("exchange nothing if there is one, and FSDP's volume if there are more", () => {
    const one = volumeOf(large, 1);
    expect(Object.values(one)).toEqual([0, 0, 0]);
    const parameters = parametersOf(large);
    const embedding = 151_936 * 1536;
    expect(volumeOf(large, 4)).toEqual({
      gatherForward: (3 / 4) * 2 * parameters,
      gatherBackward: (3 / 4) * 2 * (parameters - embedding),
      reduceScatter: (3 / 4) * 4 * parameters,
    });
  });
});

describe("memory", () => {
  it("is that of docs/gpu.md", () => {
    const gib = (tokens: number) =>
      totalOf(memoryOf(large, { tokens }), { reference: false }) / GIB;
    expect(Math.abs(gib(8 * 1024) / 40.7 - 1)).toBeLessThan(0.02);
    expect(Math.abs(gib(150_000) / 58.9 - 1)).toBeLessThan(0.06);
    const small = memoryOf(SHAPES["SmolLM2-135M"], { cached: 128 * 1500 });
    expect(small.batchTokens).toBe(8192);
    expect(Math.abs(withCuda(totalOf(small, { reference: false })) / GIB / 9.92 - 1)).toBeLessThan(
      0.1,
    );
  });
});

describe("time", () => {
  it("is found by bisection, or the nearer bound", () => {
    expect(solve(0, 10, 12, (value) => 3 * value)).toBeCloseTo(4, 9);
    expect(solve(0, 10, 100, (value) => 3 * value)).toBeCloseTo(10, 9);
  });

  it("is what arithmetic, the host or memory takes, as the machine overlaps them", () => {
    const machine: Machine = {
      name: "made up",
      bytes: 2,
      flops: 1e12,
      move: Number.POSITIVE_INFINITY,
      read: 1e9,
      cache: Number.POSITIVE_INFINITY,
      copy: Number.POSITIVE_INFINITY,
      scores: Number.POSITIVE_INFINITY,
      layer: 1,
      ahead: false,
      stepLayer: 0,
      wire: 100,
      limits: () => limits,
      optimizer: 0,
    };
    const score = { do: "score", sequences: 2, length: 1000 } as const;
    const arithmetic = workOf(large, limits, score).passFlops / 1e12;
    const launching = 2 * large.layers;
    expect(secondsOf(machine, large, score)).toBeCloseTo(arithmetic + launching, 6);
    expect(secondsOf({ ...machine, ahead: true }, large, score)).toBeCloseTo(launching, 6);
    expect(secondsOf(machine, large, score, 500)).toBeCloseTo(arithmetic + launching + 5, 6);
    // A single row: every decode step reads all weights.
    const sample = { do: "sample", prompts: 1, count: 1, prompt: 1, fresh: 10 } as const;
    const reading = (10 * 2 * parametersOf(large)) / 1e9;
    expect(secondsOf({ ...machine, layer: 0 }, large, sample)).toBeCloseTo(reading, 1);
  });

  it("predicts on the H200 what it was not fitted to, but for an older sampler, within three tenths", async () => {
    const points = await gpuPoints();
    const machine = gpuMachine(points);
    const checked = points.filter(({ fits }) => fits === undefined);
    expect(checked.length).toBeGreaterThanOrEqual(6);
    for (const point of checked) {
      if (point.what.includes("older sampler")) continue;
      expect(Math.abs(predicted(machine, point) / point.measured - 1), point.what).toBeLessThan(
        0.3,
      );
    }
  });

  it("predicts for the embedded engine what it was not fitted to within a factor of 1.6", () => {
    const { engine } = recorded();
    const machine = embeddedMachine(engine);
    const checked = embeddedPoints(engine).filter(({ fits }) => fits === undefined);
    expect(checked.length).toBeGreaterThanOrEqual(8);
    for (const point of checked) {
      const ratio = predicted(machine, point) / point.measured;
      expect(Math.max(ratio, 1 / ratio), `${point.shape}: ${point.what}`).toBeLessThan(1.6);
    }
  });
});
