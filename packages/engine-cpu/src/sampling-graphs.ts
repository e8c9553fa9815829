/**
 * The sampling graphs: prefill computes the prompts once, a decode step adds one token to every
 * row.
 *
 * A prompt's keys and values are computed once by prefill and shared by all samples of that prompt;
 * each row's own tokens have a small cache of their own. Neither cache is a result of decode,
 * because results are copied: decode returns only the new token's keys and values.
 */
import { type ModelConfig, windowOf } from "@pawl/models/weights/model-config.js";
import { addInput, createGraph, floatVector, type Graph, type Tensor } from "./graph.js";
import { causalMask, logSumExp, MASKED } from "./layers.js";
import {
  cast,
  concat,
  elementwise,
  fusedMatMul,
  matMul,
  reduce,
  softmax,
  splitInto,
  where,
  withNumber,
} from "./operators.js";
import { linear, reshape, selectRows, transpose } from "./ops.js";
import { finishProgram, type Program } from "./program.js";
import { scan } from "./scan.js";
import {
  attentionInput,
  attentionScale,
  byWindow,
  type Context,
  declareTables,
  declareWeights,
  embed,
  finish,
  finishLayer,
  layer,
  outputWeight,
  project,
  storeWeights,
} from "./transformer.js";

/** Weights to store in the graph; if undefined, they are inputs. */
export type StoredWeights = ReadonlyMap<string, Float32Array>;

/** Names of the caches among inputs and results, by layer. */
export const cacheNames = {
  promptKeys: (index: number) => `promptKeys:${index}`,
  promptValues: (index: number) => `promptValues:${index}`,
  ownKeys: (index: number) => `ownKeys:${index}`,
  ownValues: (index: number) => `ownValues:${index}`,
  newKeys: (index: number) => `newKeys:${index}`,
  newValues: (index: number) => `newValues:${index}`,
} as const;

/** Names of a decode step's masks among its inputs, for layers with such a window or without. */
export function maskNames(window: number | undefined) {
  return window === undefined
    ? ({ prompt: "promptMask", own: "ownMask" } as const)
    : ({ prompt: "windowPromptMask", own: "windowOwnMask" } as const);
}

/** Reads prompts and returns the next-token distribution of each. */
export function prefillProgram(
  config: ModelConfig,
  masked: boolean,
  stored?: StoredWeights,
): Program {
  const graph = createGraph();
  const context = declareContext(graph, config, stored);
  const items = [
    addInput(graph, "ids", "int32", ["chunks", "tokens"]),
    addInput(graph, "positions", "int32", ["chunks", "rows", "length"]),
    addInput(graph, "lastTokens", "int32", ["chunks", "rows"]),
    addInput(graph, "lastPositions", "int32", ["chunks", "rows", 1]),
  ];
  const { outputs } = scan(graph, [], items, (_, __, inner) => {
    const [ids, positions, lastTokens, lastPositions] = inner as readonly [
      Tensor,
      Tensor,
      Tensor,
      Tensor,
    ];
    const caches: Tensor[] = [];
    const wide = cast(positions, "int64");
    const masks = byWindow(config, (window) => [causalMask(positions, positions, window)]);
    const last = config.layers - 1;
    let x = embed(context, ids);
    for (let index = 0; index < last; index++)
      x = layer(context, index, x, {
        positions: wide,
        masks: masks(index),
        onKeysValues: (keys, values) => caches.push(keys, values),
      });
    const ends = { tokens: cast(lastTokens, "int64"), positions: lastPositions };
    const [residual, attended] = lastAttention(context, x, positions, wide, ends, caches);
    return { states: [], outputs: [residual, attended, ...caches] };
  });
  // The rest concerns one token per prompt, so it is done for all prompts at once, not chunk by
  // chunk.
  const [residual, attended] = outputs
    .slice(0, 2)
    .map((tensor) => reshape(tensor, ["prompts", tensor.shape.at(-1)!]));
  const hidden = finish(context, finishLayer(context, config.layers - 1, residual!, attended!));
  const inverse = addInput(graph, "inverseTemperature", "float32", ["prompts", 1]);
  const allowed = allowedTokens(graph, config, "prompts", masked);
  const results = new Map(distribution(context, hidden, inverse, allowed));
  for (const index of layersOf(config)) {
    results.set(cacheNames.promptKeys(index), outputs[2 + 2 * index]!);
    results.set(cacheNames.promptValues(index), outputs[3 + 2 * index]!);
  }
  return finishProgram(graph, results);
}

/**
 * The residual stream and the last layer's attention at the end of each prompt: for other tokens,
 * only the keys and values of that layer are needed.
 */
function lastAttention(
  context: Context,
  x: Tensor,
  positions: Tensor,
  wide: Tensor,
  ends: { readonly tokens: Tensor; readonly positions: Tensor },
  caches: Tensor[],
): readonly [Tensor, Tensor] {
  const { config } = context;
  const index = config.layers - 1;
  const normed = attentionInput(context, index, x);
  const keys = project(context, index, "key", normed, wide);
  const values = project(context, index, "value", normed, wide);
  caches.push(keys, values);
  const at = selectRows(normed, ends.tokens);
  const plain = grouped(
    project(context, index, "query", at, cast(ends.positions, "int64")),
    config,
  );
  const q = withNumber("Mul", plain, attentionScale(config));
  const mask = causalMask(ends.positions, positions, windowOf(config, index));
  const weights = softmax(elementwise("Add", fusedMatMul(q, keys, { transB: true }), mask));
  const attended = reshape(matMul(weights, values), [q.shape[0]!, config.heads * config.headSize]);
  return [selectRows(x, ends.tokens), attended];
}

/** Queries of one position [rows, heads, 1, size], grouped by the key-value head they share. */
function grouped(q: Tensor, config: ModelConfig): Tensor {
  const { kvHeads, heads, headSize } = config;
  return reshape(q, [q.shape[0]!, kvHeads, heads / kvHeads, headSize]);
}

/**
 * Adds one token to every row of a grid [groups, count] and returns the next-token distributions.
 */
export function decodeProgram(
  config: ModelConfig,
  masked: boolean,
  stored?: StoredWeights,
): Program {
  const graph = createGraph();
  const context = declareContext(graph, config, stored);
  const grid = addInput(graph, "ids", "int32", ["groups", "count"]);
  const positions = addInput(graph, "positions", "int32", ["batch", 1]);
  const inverse = addInput(graph, "inverseTemperature", "float32", ["batch", 1]);
  const masks = byWindow(config, (window) => {
    const names = maskNames(window);
    return {
      promptMask: addInput(graph, names.prompt, "float32", ["groups", 1, 1, "prompt"]),
      ownMask: addInput(graph, names.own, "float32", [1, 1, 1, "own"]),
    };
  });
  const wide = cast(positions, "int64");
  const results = new Map<string, Tensor>();
  let x = embed(context, reshape(grid, ["batch"]));
  for (const index of layersOf(config)) {
    const normed = attentionInput(context, index, x);
    const q = grouped(project(context, index, "query", normed, wide), config);
    const keys = project(context, index, "key", normed, wide);
    const values = project(context, index, "value", normed, wide);
    results.set(cacheNames.newKeys(index), keys);
    results.set(cacheNames.newValues(index), values);
    const attended = attendCaches(graph, config, index, { q, keys, values, ...masks(index) });
    x = finishLayer(context, index, x, attended);
  }
  const allowed = allowedTokens(graph, config, "batch", masked);
  for (const [name, tensor] of distribution(context, finish(context, x), inverse, allowed))
    results.set(name, tensor);
  return finishProgram(graph, results);
}

/** Attention of one new token per row to its prompt, to its own earlier tokens, and to itself. */
function attendCaches(
  graph: Graph,
  config: ModelConfig,
  index: number,
  now: {
    readonly q: Tensor;
    readonly keys: Tensor;
    readonly values: Tensor;
    readonly promptMask: Tensor;
    readonly ownMask: Tensor;
  },
): Tensor {
  const { kvHeads, headSize } = config;
  const times = config.heads / kvHeads;
  // Scaled here and not in the products, which are faster without a scale for a single row.
  const q = withNumber("Mul", now.q, attentionScale(config));
  const declare = (name: string, ...shape: (string | number)[]) =>
    addInput(graph, name, "float32", shape);
  const ofPrompt = (name: string) => declare(name, "groups", kvHeads, "prompt", headSize);
  const promptKeys = ofPrompt(cacheNames.promptKeys(index));
  const promptValues = ofPrompt(cacheNames.promptValues(index));
  const ownKeys = declare(cacheNames.ownKeys(index), "own", "batch", kvHeads, headSize);
  const ownValues = declare(cacheNames.ownValues(index), "own", "batch", kvHeads, headSize);
  // Rows of a group are the rows of one matrix, so a shared prompt is read once for all of them.
  const byGroup = (x: Tensor, width: string | number) =>
    reshape(transpose(reshape(x, ["groups", "count", kvHeads, times, width]), [0, 2, 1, 3, 4]), [
      "groups",
      kvHeads,
      "sharing",
      width,
    ]);
  const byRow = (x: Tensor, width: string | number) =>
    reshape(transpose(reshape(x, ["groups", kvHeads, "count", times, width]), [0, 2, 1, 3, 4]), [
      "batch",
      kvHeads,
      times,
      width,
    ]);
  const promptScores = fusedMatMul(byGroup(q, headSize), promptKeys, { transB: true });
  const toPrompt = elementwise("Add", promptScores, now.promptMask);
  const ownScores = fusedMatMul(q, ownKeys, { transB: true, positionsFirst: true });
  const toOwn = elementwise("Add", ownScores, now.ownMask);
  const toSelf = reduce("ReduceSum", elementwise("Mul", q, now.keys), [3]);
  const weights = softmax(concat([byRow(toPrompt, "prompt"), toOwn, toSelf], 3, "all"));
  const [onPrompt, onOwn, onSelf] = splitInto(weights, 3, ["prompt", "own", 1]) as readonly [
    Tensor,
    Tensor,
    Tensor,
  ];
  const fromPrompt = byRow(matMul(byGroup(onPrompt, "prompt"), promptValues), headSize);
  const fromOwn = fusedMatMul(onOwn, ownValues, { positionsFirst: true });
  const fromSelf = elementwise("Mul", onSelf, now.values);
  const sum = elementwise("Add", elementwise("Add", fromPrompt, fromOwn), fromSelf);
  return reshape(sum, ["batch", config.heads * headSize]);
}

/**
 * The next-token distribution for some hidden states, as results by name: probabilities at the row's
 * temperature, and log Σ exp of the logits with and without it.
 */
export function distribution(
  context: Context,
  hidden: Tensor,
  inverse: Tensor,
  allowed?: Tensor,
): readonly (readonly [string, Tensor])[] {
  const all = linear(hidden, outputWeight(context));
  const logits =
    allowed === undefined ? all : where(allowed, all, floatVector(all.graph, [MASKED]));
  const tempered = elementwise("Mul", logits, inverse);
  const probabilities = softmax(tempered);
  return [
    ["probabilities", probabilities],
    ["logSum", logSumExp(tempered, probabilities)],
    ["plainLogSum", logSumExp(logits, softmax(logits))],
  ];
}

/** The tokens that each row may take next, as an input, in a graph that asks for them. */
export function allowedTokens(
  graph: Graph,
  config: ModelConfig,
  rows: string,
  masked: boolean,
): Tensor | undefined {
  return masked ? addInput(graph, ALLOWED, "bool", [rows, config.vocabularySize]) : undefined;
}

/** Name of the allowed tokens among a sampling graph's inputs. */
export const ALLOWED = "allowed";

/** The model's inputs in a sampling graph. */
export function declareContext(
  graph: Graph,
  config: ModelConfig,
  stored: StoredWeights | undefined,
): Context {
  return {
    config,
    weights:
      stored === undefined
        ? declareWeights(graph, config, false)
        : storeWeights(graph, config, stored),
    ...declareTables(graph, config),
  };
}

export function layersOf(config: ModelConfig): readonly number[] {
  return Array.from({ length: config.layers }, (_, index) => index);
}
