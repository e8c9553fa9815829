/**
 * What an update costs on one H200 and on several: `npm run bench -- cost` prints a model's seconds and
 * bytes beside what docs/gpu.md measured. Nothing is run.
 *
 * Counted are operations of matrix products, bytes of weights, keys, values and activations in memory,
 * and bytes over HTTP. Padding is not, nor are the operations of norms and activation functions.
 */
import { table } from "@pawl/studies/markdown.js";

/** A model with tied embeddings; `queries` and `keys` are a token's numbers of them in a layer. */
const SIZES = ["vocabulary", "hidden", "layers", "queries", "keys", "mlp", "bias"] as const;
type Shape = Readonly<Record<(typeof SIZES)[number], number>>;
const shape = (...sizes: readonly number[]) =>
  Object.fromEntries(SIZES.map((name, index) => [name, sizes[index]])) as Shape;

export const SHAPES = {
  "SmolLM2-135M": shape(49_152, 576, 30, 576, 192, 1536, 0),
  "Qwen2.5-0.5B": shape(151_936, 896, 24, 896, 128, 4864, 1),
  "Qwen2.5-1.5B": shape(151_936, 1536, 28, 1536, 256, 8960, 1),
};
type ShapeName = keyof typeof SHAPES;

/** Sequences read in one pass, `targets` tokens of each predicted; `steps` are optimiser steps. */
interface Pass {
  readonly do: "score" | "learn";
  readonly sequences: number;
  readonly length: number;
  readonly targets: number;
  readonly steps?: number;
}

/** Prompts read but for `cached` tokens, each continued by `fresh` ones `count` times. */
interface Sample {
  readonly do: "sample";
  readonly prompts: number;
  readonly prompt: number;
  readonly fresh: number;
  readonly cached?: number;
  readonly count?: number;
  /** How often, one after the other. */
  readonly times?: number;
}

type Task = Pass | Sample;

// What an H200 reaches. The first four are fitted, each to the row of the first table that names it.
const PRODUCTS = 6.466e14; // operations a second
const READING = 2.571e12; // bytes a second of weights, keys and values while decoding
const LAUNCHING = 8.593e-4; // seconds of the host per layer and forward pass
const WIRE = 2.682e7; // bytes a second over HTTP, most of which is writing and reading JSON
const MOVING = 0.8 * 4.8e12; // bytes a second of activations: assumed share of the datasheet's
const GAPS = 0.2e-3 / 28; // seconds between kernels of a decode step, per layer (docs/gpu.md)
const ROWS = 256; // decoded together
const OPTIMIZER = 4 + 16 + 12 + 2; // bytes per weight: norm; four read; three written; 16-bit copy
/** Assumed: bytes per second that a GPU receives, nominal times the share that collectives reach. */
const LINKS = { nvlink: 0.8 * 450e9, network: 0.8 * (400e9 / 8) } as const;
type Link = keyof typeof LINKS;

/** Weights of a layer's matrices. */
const layerWeights = ({ hidden, queries, keys, mlp }: Shape): number =>
  hidden * (2 * queries + 2 * keys + 3 * mlp);

/** All weights. */
export function parametersOf(model: Shape): number {
  const { vocabulary, hidden, layers, queries, keys, bias } = model;
  const vectors = 2 * hidden + bias * (queries + 2 * keys);
  return vocabulary * hidden + layers * (layerWeights(model) + vectors) + hidden;
}

/** Bytes that are kept of a token: for the backward pass (micro_batch.py of the server), in the KV cache. */
const activationBytes = ({ layers, hidden, mlp, queries, keys }: Shape): number =>
  2 * layers * (3 * hidden + 2 * queries + 2 * keys + 3 * mlp);
const cachedBytes = ({ layers, keys }: Shape): number => 2 * layers * 2 * keys;

/** The server's micro-batch (micro_batch.py): activations of at most 32 bytes per weight. */
function batchTokens(model: Shape): number {
  const tokens = Math.floor((32 * parametersOf(model)) / activationBytes(model));
  return Math.max(4096, Math.min(16_384, Math.floor(tokens / 1024) * 1024));
}

/** Pairs of a token and one that it sees, `fresh` tokens after `before` others. */
const seenPairs = (before: number, fresh: number): number =>
  fresh * before + (fresh * (fresh + 1)) / 2;

/** Operations for `fresh` tokens after `before` cached ones, of which `targets` are predicted. */
function operations(model: Shape, before: number, fresh: number, targets: number): number {
  const { vocabulary, hidden, layers, queries } = model;
  const products = layers * layerWeights(model) * fresh + vocabulary * hidden * targets;
  return 2 * products + 4 * layers * queries * seenPairs(before, fresh);
}

/** Seconds of a forward pass. The host launches ahead of the GPU: the slower of both counts. */
function passSeconds(model: Shape, rows: number, before: number, fresh: number, targets: number) {
  const { layers, hidden, queries, keys, mlp, vocabulary } = model;
  const between = layers * (5 * hidden + 2 * queries + 2 * keys + 3 * mlp) * fresh;
  // Written and read in 16 bits, logits twice.
  const moved = 2 * 2 * (between + 2 * vocabulary * targets);
  const device = rows * (operations(model, before, fresh, targets) / PRODUCTS + moved / MOVING);
  const passes = Math.ceil((rows * fresh) / batchTokens(model));
  return Math.max(device, passes * layers * LAUNCHING);
}

/** Seconds of decoding: arithmetic or reading the weights, then keys and values, and gaps. */
function decodeSeconds(model: Shape, rows: number, before: number, fresh: number): number {
  const steps = Math.ceil(rows / ROWS) * fresh;
  const arithmetic = (rows * operations(model, before, fresh, fresh)) / PRODUCTS;
  const weights = (2 * parametersOf(model) * steps) / READING;
  const cache = (cachedBytes(model) * rows * seenPairs(before, fresh)) / READING;
  return Math.max(arithmetic, weights) + cache + steps * model.layers * GAPS;
}

/** Seconds of a task on one GPU, without HTTP. A backward pass takes as long as two forward. */
export function secondsOf(model: Shape, task: Task): number {
  if (task.do === "sample") {
    const { prompts, prompt, fresh, cached = 0, count = 1, times = 1 } = task;
    const read = passSeconds(model, prompts, cached, prompt - cached, 1);
    return times * (read + decodeSeconds(model, prompts * count, prompt, fresh));
  }
  const forward = passSeconds(model, task.sequences, 0, task.length, task.targets);
  if (task.do === "score") return forward;
  return 3 * forward + ((task.steps ?? 1) * OPTIMIZER * parametersOf(model)) / MOVING;
}

/** Bytes over HTTP, as counted once in requests and answers; learning is with PaW's objective. */
function wireOf(task: Task): number {
  if (task.do === "sample")
    return (task.times ?? 1) * task.prompts * (306 + 5.33 * task.prompt + 48 * task.fresh);
  const [request, token] = task.do === "score" ? [733, 22.3] : [670, 48.9];
  return task.sequences * (request! + token! * task.length);
}

/** The paper's recipe for ALFWorld, as docs/gpu.md measured it: every step has a prompt of its own. */
export const paper = {
  shape: "Qwen2.5-1.5B" as ShapeName,
  episodes: 128,
  steps: 50,
  prompt: 488,
  response: 100,
  observation: 13,
};
type Update = Readonly<typeof paper>;

/** An update's tasks; the reference scores, and an optimiser step takes 256 sequences. */
function phasesOf({ episodes, steps, prompt, response, observation }: Update) {
  const sequences = episodes * steps;
  const length = prompt + response;
  const learnt = { length: length + observation, targets: response + observation };
  const optimiserSteps = Math.max(1, Math.round(sequences / 256));
  return {
    act: { do: "sample", prompts: episodes, prompt, fresh: response, times: steps },
    score: { do: "score", sequences, length, targets: response },
    learn: { do: "learn", sequences, ...learnt, steps: optimiserSteps },
  } as const satisfies Record<string, Task>;
}

/** Bytes on a GPU: weights (32 and 16 bits), gradients, moments, reference; tokens; CUDA's own. */
export function memoryOf(model: Shape, cached: number, learnt: number, reference = true): number {
  const weights = (4 + 2 + 4 + 8 + (reference ? 2 : 0)) * parametersOf(model);
  const activations = activationBytes(model) * Math.min(learnt, batchTokens(model));
  return weights + activations + cachedBytes(model) * cached + 0.8 * 2 ** 30;
}

/**
 * Bytes that each of some GPUs receives in a micro-batch by FSDP2 (sharding.py of the server): weights in 16
 * bits for the forward pass, all but the embedding for the backward pass, gradients in 32 bits.
 */
export function volumeOf(model: Shape, gpus: number) {
  const [parameters, share] = [parametersOf(model), (gpus - 1) / gpus];
  const forward = 2 * parameters * share;
  const backward = 2 * (parameters - model.vocabulary * model.hidden) * share;
  return { forward, all: forward + backward + 4 * parameters * share };
}

/** An update's seconds with HTTP, if what the GPUs exchange hides behind arithmetic, or does not. */
export function secondsOn(update: Update, gpus = 1, link: Link = "nvlink", hides = true) {
  const model = SHAPES[update.shape];
  const { act, score, learn } = phasesOf(update);
  const volume = volumeOf(model, gpus);
  const phase = (task: Pass, received: number) => {
    const { sequences, length, steps = 1 } = task;
    const passes = steps * Math.ceil((sequences * length) / gpus / steps / batchTokens(model));
    const arithmetic = secondsOf(model, { ...task, sequences: sequences / gpus });
    const waiting = (passes * received) / LINKS[link];
    const both = hides ? Math.max(arithmetic, waiting) : arithmetic + waiting;
    return { seconds: both + wireOf(task) / WIRE, pass: arithmetic / passes };
  };
  const learning = phase(learn, volume.all);
  // Before its first token a turn gathers all weights, and nothing hides that.
  const gathering = (update.steps * volume.forward) / LINKS[link];
  const acting = secondsOf(model, { ...act, prompts: act.prompts / gpus });
  const phases = {
    act: acting + gathering + wireOf(act) / WIRE,
    score: phase(score, volume.forward).seconds,
    learn: learning.seconds,
  };
  const total = phases.act + phases.score + phases.learn;
  return { ...phases, total, pass: learning.pass, communication: volume.all / LINKS[link] };
}

function pass(sequences: number, length: number, targets = length, steps = 1): Task {
  return { do: "learn", sequences, length, targets, steps };
}
function sample(prompts: number, prompt: number, fresh: number, more?: Partial<Sample>): Task {
  return { do: "sample", prompts, prompt, fresh, ...more };
}

/** What docs/gpu.md measured: seconds of a task, with bytes over HTTP, and the constant that is fitted. */
interface Point {
  readonly wire?: number;
  readonly fits?: string;
  readonly shape?: ShapeName;
}
export function points() {
  const { act, score, learn } = phasesOf(paper);
  // The client of the small model (gpu_small.py) packs token ids, and has three arrays and an answer.
  const small = { shape: "SmolLM2-135M", wire: (128 * 1500 * 4 * 16) / 3 } as const;
  const measured: readonly (readonly [string, Task, number, Point?])[] = [
    ["learning 256 steps like ALFWorld's", pass(256, 588, 113), 2.472, { fits: "PRODUCTS" }],
    ["sampling 128 × (512 + 128)", sample(128, 512, 128), 0.6277, { fits: "READING" }],
    ["learning 128 × 1,500", pass(128, 1500), 2.01, { fits: "LAUNCHING", ...small }],
    ["whole update: scoring", score, 23.7, { fits: "WIRE", wire: wireOf(score) }],
    ["whole update: learning", learn, 73, { wire: wireOf(learn) }],
    ["whole update: acting (an older sampler)", act, 47.2, { wire: wireOf(act) }],
    ["learning 8 × 1,024", pass(8, 1024), 0.1762],
    ["sampling 128 × (512 + 512)", sample(128, 512, 512), 1.622],
    ["sampling 16 × 8 × (512 + 128)", sample(16, 512, 128, { count: 8 }), 0.3213],
    ["sampling 16 × 8 × (512 + 512)", sample(16, 512, 512, { count: 8 }), 1.263],
    ["the same, 128, with 400 tokens cached", sample(128, 512, 128, { cached: 400 }), 0.3958],
    ["engine alone: scoring", { ...score, length: 575 }, 21.8],
    ["engine alone: learning", pass(6400, 588, 113, 17), 62.4],
    ["engine alone: acting, 40 to 160 new tokens", sample(128, 476, 100, { times: 50 }), 36.7],
  ];
  return measured.map(([what, task, measured, { shape = paper.shape, wire = 0, fits } = {}]) => {
    const seconds = secondsOf(SHAPES[shape], task) + wire / WIRE;
    return { shape, what, measured, seconds, error: seconds / measured - 1, fits };
  });
}

const shown = (value: number): string => Number(value.toPrecision(3)).toLocaleString("en");
const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/** One update: seconds by phase, tokens, bytes over HTTP and on the GPU. */
function costOf(what: string, change: Partial<Update>) {
  const update = { ...paper, ...change };
  const { act, score, learn } = phasesOf(update);
  const [tokens, rows] = [learn.sequences * learn.length, Math.min(update.episodes, ROWS)];
  return {
    what,
    ...secondsOn(update),
    tokens: tokens / 1e6,
    wire: sum([act, score, learn].map(wireOf)) / 1e6,
    memory: memoryOf(SHAPES[update.shape], rows * learn.length, tokens) / 2 ** 30,
  };
}

/** Prints the tables and returns their numbers. */
export async function main() {
  const checks = points();
  const costs = [
    ...(Object.keys(SHAPES) as ShapeName[]).map((shape) => costOf(shape, { shape })),
    ...[512, 1024, 2048, 4096, 8192].map((context) =>
      costOf(`context ${context}`, { prompt: context - paper.response - paper.observation }),
    ),
    ...[32, 512, 2048].map((episodes) => costOf(`${episodes} episodes`, { episodes })),
  ];
  const several = [2, 4, 8, 16].flatMap((gpus) =>
    Object.keys(LINKS).map((link) => ({
      gpus,
      link,
      hidden: secondsOn(paper, gpus, link as Link),
      exposed: secondsOn(paper, gpus, link as Link, false),
    })),
  );
  const tables = [
    table(
      ["model", "what", "measured, s", "modelled, s", "error"],
      checks.map(({ shape, what, measured, seconds, error, fits }) => [
        ...[shape, what, shown(measured), shown(seconds)],
        fits ? `fits ${fits}` : `${Math.round(100 * error)} %`,
      ]),
    ),
    table(
      ["update", "M tokens", "acting + scoring + learning, s", "all, s", "HTTP, MB", "GPU, GiB"],
      costs.map(({ what, tokens, act, score, learn, total, wire, memory }) => [
        ...[what, shown(tokens), [act, score, learn].map(shown).join(" + ")],
        ...[total, wire, memory].map(shown),
      ]),
    ),
    table(
      ["GPUs", "link", "computing a micro-batch, s", "receiving its, s", "update, s"],
      several.map(({ gpus, link, hidden, exposed }) => [
        ...[String(gpus), link, shown(hidden.pass), shown(hidden.communication)],
        [hidden.total, exposed.total].map(shown).join(" to "),
      ]),
    ),
  ];
  process.stdout.write(`${tables.map((lines) => lines.join("\n")).join("\n\n")}\n\n`);
  return { checks, costs, several };
}
