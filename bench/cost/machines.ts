/**
 * The two machines, with their measurements. Some of these fit the constants; the others are predicted,
 * and checked.
 */
import type { ModelConfig } from "../../src/engine/weights/model-config.js";
import { type Machine, seconds, secondsOf, solve } from "./machine.js";
import type { Measurements } from "./measure.js";
import { memoryOf } from "./memory.js";
import { SHAPES, type ShapeName } from "./shape.js";
import type { Task } from "./task.js";
import { wireOf } from "./wire.js";
import { cachedNumbers, type Limits, workOf } from "./work.js";

/** A measured task. */
export interface Point {
  readonly what: string;
  readonly shape: ShapeName;
  readonly task: Task;
  readonly measured: number;
  /** Bytes over HTTP; 0 if it was measured in the engine's process. */
  readonly wire: number;
  /** The constant that is fitted to it, if it is not checked. */
  readonly fits?: string;
}

const LARGE = "Qwen2.5-1.5B";
const SMALL = "SmolLM2-135M";
const sampled = (prompts: number, count: number, fresh: number): Task => ({
  do: "sample",
  prompts,
  count,
  prompt: 512,
  fresh,
});
/** In the engine's process. */
const local = (what: string, task: Task, measured: number, fits?: string): Point => ({
  what,
  shape: LARGE,
  task,
  measured,
  wire: 0,
  ...(fits && { fits }),
});
/** Through the server. */
const remote = async (
  what: string,
  shape: ShapeName,
  task: Task,
  measured: number,
  more: Partial<Point> = {},
): Promise<Point> => ({ what, shape, task, measured, wire: await wireOf(task), ...more });

/** A whole update of docs/gpu.md: 6,400 steps and 3.85 million tokens, of each step 100 sampled and about 13 observed. */
export const WHOLE = { prompt: 488, response: 100, observation: 13, episodes: 128, steps: 50 };
const length = WHOLE.prompt + WHOLE.response;
const sequences = WHOLE.episodes * WHOLE.steps;

/** The H200, all from docs/gpu.md. */
export async function gpuPoints(): Promise<readonly Point[]> {
  const turns = { turns: 30, first: 300, response: 8, observation: 32 };
  return [
    local(
      "learning 256 steps like ALFWorld's",
      { do: "learn", sequences: 256, length: 588, targets: 113 },
      (256 * 588) / 60_900,
      "products",
    ),
    local(
      "sampling 128 prompts, 512 + 128 tokens",
      sampled(128, 1, 128),
      (128 * 128) / 26_100,
      "reading",
    ),
    await remote(
      "learning 128 episodes of 1,500 tokens",
      SMALL,
      { do: "learn", sequences: 128, length: 1500 },
      2.01,
      // Its client packs token ids, and has three arrays and an answer (gpu_small.py).
      { fits: "launching", wire: (128 * 1500 * 4 * 16) / 3 },
    ),
    await remote(
      "whole update: scoring",
      LARGE,
      { do: "score", sequences, length, targets: WHOLE.response },
      23.7,
      { fits: "wire" },
    ),
    await remote(
      "whole update: learning",
      LARGE,
      {
        do: "learn",
        sequences,
        length: length + WHOLE.observation,
        targets: WHOLE.response + WHOLE.observation,
        steps: 25,
      },
      73,
    ),
    await remote(
      "whole update: acting (an older sampler)",
      LARGE,
      {
        do: "sample",
        prompts: WHOLE.episodes,
        count: 1,
        prompt: WHOLE.prompt,
        fresh: WHOLE.response,
        times: WHOLE.steps,
      },
      47.2,
    ),
    local("learning 8 × 1,024 tokens", { do: "learn", sequences: 8, length: 1024 }, 8192 / 46_500),
    local("sampling 128 prompts, 512 + 512 tokens", sampled(128, 1, 512), (128 * 512) / 40_400),
    local("sampling 16 × 8, 512 + 128 tokens", sampled(16, 8, 128), (128 * 128) / 51_000),
    local("sampling 16 × 8, 512 + 512 tokens", sampled(16, 8, 512), (128 * 512) / 51_900),
    local(
      "sampling 128 prompts, 400 of 512 tokens kept",
      { do: "sample", prompts: 128, count: 1, prompt: 512, cached: 400, fresh: 128 },
      (128 * 128) / 41_400,
    ),
    // Extrapolated there from 3 rounds of 50, with an optimiser step each time.
    local(
      "engine alone: scoring",
      { do: "score", sequences, length: 575, targets: WHOLE.response },
      21.8,
    ),
    local(
      "engine alone: learning",
      { do: "learn", sequences, length: 588, targets: 113, steps: 17 },
      62.4,
    ),
    local(
      "engine alone: acting, 40 to 160 new tokens",
      { do: "sample", prompts: 128, count: 1, prompt: 476, fresh: 100, times: WHOLE.steps },
      36.7,
    ),
    await remote(
      "acting, 128 episodes of 30 turns",
      SMALL,
      { do: "act", episodes: 128, ...turns },
      2.38,
    ),
  ];
}

/** The H200's bandwidth by its datasheet; activations are assumed to reach 0.8 of it. */
const BANDWIDTH = 4.8e12;

/** The PyTorch server on an H200. */
export function gpuMachine(points: readonly Point[]): Machine {
  return fitted(
    {
      name: "H200",
      bytes: 2,
      flops: 5e14,
      move: 0.8 * BANDWIDTH,
      read: BANDWIDTH,
      cache: BANDWIDTH,
      copy: Number.POSITIVE_INFINITY,
      scores: Number.POSITIVE_INFINITY,
      layer: 0,
      ahead: true,
      // 0.2 ms of gaps in a decode step of 28 layers (docs/gpu.md).
      stepLayer: 0.2e-3 / 28,
      wire: 1e8,
      limits: (shape) => ({
        batchTokens: memoryOf(shape, {}).batchTokens,
        rows: 256,
        cachedTokens: Number.POSITIVE_INFINITY,
      }),
      // Norm; master, gradient and both moments read, three of them written, and a 16-bit copy.
      optimizer: 4 + 16 + 12 + 2,
    },
    points,
    {
      products: { high: 1e-13, set: (value) => ({ flops: 1 / value }) },
      reading: { high: 1e-10, set: (value) => ({ read: 1 / value, cache: 1 / value }) },
      wire: { high: 1e-6, set: (value) => ({ wire: 1 / value }) },
      launching: { high: 1, set: (value) => ({ layer: value }) },
    },
  );
}

/** How a constant is searched for: seconds per unit between 0 and `high`. */
interface Constant {
  readonly high: number;
  readonly set: (value: number) => Partial<Machine>;
}

/** Each constant is fitted to its point with the others as they are, until none changes. */
function fitted(
  start: Machine,
  points: readonly Point[],
  constants: Readonly<Record<string, Constant>>,
): Machine {
  let machine = start;
  const pointOf = (name: string): Point => {
    const point = points.find(({ fits }) => fits === name);
    if (point === undefined) throw new Error(`no measurement fits the constant "${name}"`);
    return point;
  };
  const parts = Object.entries(constants).map(([name, constant]) => {
    const { shape, task, wire, measured } = pointOf(name);
    const work = workOf(SHAPES[shape], start.limits(SHAPES[shape]), task);
    const spent = (now: Machine) => seconds(now, SHAPES[shape], work) + wire / now.wire;
    return { ...constant, measured, spent };
  });
  for (let round = 0; round < 50; round++)
    for (const { high, set, measured, spent } of parts) {
      const changed = (value: number): Machine => ({ ...machine, ...set(value) });
      machine = changed(solve(0, high, measured, (value) => spent(changed(value))));
    }
  for (const name of Object.keys(constants)) {
    const [is, was] = [predicted(machine, pointOf(name)), pointOf(name).measured];
    if (Math.abs(is / was - 1) > 0.01)
      throw new Error(
        `${machine.name}: no value of the constant "${name}" gives the measured ${was} s; the nearest gives ${is} s. Measure again on a quieter machine`,
      );
  }
  return machine;
}

/** The seconds that a machine should take for a point. */
export function predicted(machine: Machine, { shape, task, wire }: Point): number {
  return secondsOf(machine, SHAPES[shape], task, wire);
}

/**
 * What the embedded engine computes at a time with two replicas (`engine/embedded/learner.ts`), and keeps
 * between turns: 512 MB of keys and values (`replica.ts`), of which 64 tokens a row are spare.
 */
function embeddedLimits(shape: ModelConfig): Limits {
  const { mlpSize, vocabularySize } = shape;
  const widest = [512, Math.floor(2 ** 20 / mlpSize), Math.floor(2 ** 24 / vocabularySize)];
  return {
    batchTokens: Math.max(32, Math.min(...widest)),
    rows: 256,
    cachedTokens: 2 ** 29 / (4 * cachedNumbers(shape)),
  };
}

/** The measurements of the embedded engine that constants are fitted to. */
const FITTED: readonly {
  readonly fits: string;
  readonly shape: ShapeName;
  readonly what: string;
}[] = [
  { fits: "products", shape: "small", what: "learning 8 × 256 tokens" },
  { fits: "activations", shape: "tiny", what: "learning 8 × 256 tokens" },
  { fits: "attention", shape: "tiny", what: "learning 2 × 2,048 tokens" },
  { fits: "calls", shape: "tiny", what: "sampling 64 prompts, 128 + 32 tokens" },
  { fits: "copies", shape: "tiny", what: "acting, 128 episodes of 20 turns" },
];

/** The measurements of the embedded engine as points, in seconds of processor time. */
export function embeddedPoints({ points }: Measurements): readonly Point[] {
  return points.map(({ shape, task, processor }) => {
    const what = described(task);
    const found = FITTED.find((one) => one.shape === shape && one.what === what);
    return { what, shape, task, measured: processor, wire: 0, ...(found && { fits: found.fits }) };
  });
}

/** The embedded engine on two cores, in seconds of processor time. */
export function embeddedMachine(measurements: Measurements): Machine {
  return fitted(
    {
      name: "2 cores",
      bytes: 4,
      flops: 1e11,
      move: 1e10,
      // Weights and the KV cache are read as fast as a copy is made.
      read: measurements.bandwidth,
      cache: measurements.bandwidth,
      copy: 1e10,
      scores: 1e10,
      layer: 0,
      ahead: false,
      stepLayer: 0,
      wire: Number.POSITIVE_INFINITY,
      limits: embeddedLimits,
      optimizer: 4 + 16 + 12,
    },
    embeddedPoints(measurements),
    {
      products: { high: 1e-9, set: (value) => ({ flops: 1 / value }) },
      activations: { high: 1e-7, set: (value) => ({ move: 1 / value }) },
      attention: { high: 1e-7, set: (value) => ({ scores: 1 / value }) },
      copies: { high: 1e-7, set: (value) => ({ copy: 1 / value }) },
      calls: { high: 1, set: (value) => ({ layer: value, stepLayer: value }) },
    },
  );
}

/** A task in words. */
export function described(task: Task): string {
  if (task.do === "act") return `acting, ${task.episodes} episodes of ${task.turns} turns`;
  if (task.do === "sample")
    return `sampling ${task.prompts} prompts, ${task.prompt} + ${task.fresh} tokens`;
  const what = task.do === "score" ? "scoring" : "learning";
  return `${what} ${task.sequences} × ${task.length.toLocaleString("en")} tokens`;
}
