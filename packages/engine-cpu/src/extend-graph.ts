/**
 * The graph of a prefill behind a cached prefix (SGLang's "extend"): only the new tokens of a prompt are
 * computed, and they attend to the cached keys and values of the tokens before them.
 */
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { addInput, createGraph, type Shape, type Tensor } from "./graph.js";
import { causalMask } from "./layers.js";
import { cast, concat, elementwise, matMul, softmax, splitInto, withNumber } from "./operators.js";
import { reshape, selectRows, transpose } from "./ops.js";
import { finishProgram, type Program } from "./program.js";
import {
  allowedTokens,
  cacheNames,
  declareContext,
  distribution,
  layersOf,
  type StoredWeights,
} from "./sampling-graphs.js";
import {
  attentionInput,
  attentionScale,
  byWindow,
  embed,
  finish,
  finishLayer,
  project,
} from "./transformer.js";

/** Reads the new tokens of every row and returns the next-token distribution of each. */
export function extendProgram(
  config: ModelConfig,
  masked: boolean,
  stored?: StoredWeights,
): Program {
  const graph = createGraph();
  const context = declareContext(graph, config, stored);
  const ids = addInput(graph, "ids", "int32", ["tokens"]);
  const positions = addInput(graph, "positions", "int32", ["rows", "length"]);
  const lastTokens = addInput(graph, "lastTokens", "int32", ["rows"]);
  const inverse = addInput(graph, "inverseTemperature", "float32", ["rows", 1]);
  const pastMask = addInput(graph, "promptMask", "float32", ["rows", 1, 1, 1, "past"]);
  const wide = cast(positions, "int64");
  const masks = byWindow(config, (window) => ({
    pastMask: window === undefined ? pastMask : pastInWindow(pastMask, positions, window),
    newMask: reshape(causalMask(positions, positions, window), ["rows", 1, 1, "length", "length"]),
  }));
  const results = new Map<string, Tensor>();
  let x = embed(context, ids);
  for (const index of layersOf(config)) {
    const normed = attentionInput(context, index, x);
    const [q, keys, values] = (["query", "key", "value"] as const).map((which) =>
      project(context, index, which, normed, wide),
    ) as [Tensor, Tensor, Tensor];
    const across = transpose(keys, [0, 1, 3, 2]);
    results.set(cacheNames.newKeys(index), across);
    results.set(cacheNames.newValues(index), values);
    const attended = attendPast(config, index, { q, keys: across, values, ...masks(index) });
    x = finishLayer(context, index, x, attended);
  }
  const ends = finish(context, selectRows(x, cast(lastTokens, "int64")));
  const allowed = allowedTokens(graph, config, "rows", masked);
  for (const [name, tensor] of distribution(context, ends, inverse, allowed))
    results.set(name, tensor);
  return finishProgram(graph, results);
}

/** Name of the cached tokens' positions among the inputs, if a layer has a window. */
export const PAST_POSITIONS = "pastPositions";

/** The mask of cached tokens [rows, 1, 1, length, past] for layers with a window. */
function pastInWindow(pastMask: Tensor, positions: Tensor, window: number): Tensor {
  const past = addInput(positions.graph, PAST_POSITIONS, "int32", [1, "past"]);
  const inWindow = causalMask(positions, past, window);
  return elementwise("Add", reshape(inWindow, ["rows", 1, 1, "length", "past"]), pastMask);
}

/** Attention of new tokens to the cached ones before them and, causally, to one another. */
function attendPast(
  config: ModelConfig,
  index: number,
  now: {
    readonly q: Tensor;
    readonly keys: Tensor;
    readonly values: Tensor;
    readonly pastMask: Tensor;
    readonly newMask: Tensor;
  },
): Tensor {
  const { kvHeads, heads, headSize } = config;
  const times = heads / kvHeads;
  const { graph } = now.q;
  const past = (name: string, ...shape: readonly (string | number)[]) =>
    addInput(graph, name, "float32", ["rows", kvHeads, 1, ...shape]);
  const pastKeys = past(cacheNames.promptKeys(index), headSize, "past");
  const pastValues = past(cacheNames.promptValues(index), "past", headSize);
  // Heads that share keys and values lie next to each other along their own axis.
  const shaped = (width: string | number): Shape => ["rows", kvHeads, times, "length", width];
  const shared = (x: Tensor, ...shape: readonly (string | number)[]) =>
    reshape(x, ["rows", kvHeads, 1, ...shape]);
  const q = withNumber("Mul", reshape(now.q, shaped(headSize)), attentionScale(config));
  const toPast = elementwise("Add", matMul(q, pastKeys), now.pastMask);
  const toNew = elementwise("Add", matMul(q, shared(now.keys, headSize, "length")), now.newMask);
  const weights = softmax(concat([toPast, toNew], 4, "all"));
  const [onPast, onNew] = splitInto(weights, 4, ["past", "length"]) as readonly [Tensor, Tensor];
  const fromPast = matMul(onPast, pastValues);
  const fromNew = matMul(onNew, shared(now.values, "length", headSize));
  const sum = elementwise("Add", fromPast, fromNew);
  const byToken = transpose(reshape(sum, ["rows", heads, "length", headSize]), [0, 2, 1, 3]);
  return reshape(byToken, ["tokens", heads * headSize]);
}
