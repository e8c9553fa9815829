/**
 * The graph of a prefill behind a cached prefix (SGLang's "extend"): only the new tokens of a prompt are
 * computed, and they attend to the cached keys and values of the tokens before them.
 *
 * Rows have different numbers of new tokens. Products, norms and activations are computed token by token,
 * without padding; only attention lays the tokens out in slots, row by row. Of the last layer, keys and
 * values are needed for all tokens, and the rest for the last token of each row.
 */
import { type ModelConfig, windowOf, windowsOf } from "@pawl/models/weights/model-config.js";
import { addInput, createGraph, type Dimension, type Shape, type Tensor } from "./graph.js";
import { causalMask } from "./layers.js";
import {
  cast,
  concat,
  elementwise,
  fusedMatMul,
  gather,
  matMul,
  softmax,
  splitInto,
  withNumber,
} from "./operators.js";
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
  const declare = (name: string, ...shape: Shape) => addInput(graph, name, "int32", shape);
  const ids = declare("ids", "tokens");
  const positions = cast(declare("positions", "tokens", 1), "int64");
  const slots: Slots = {
    tokens: declare("slotTokens", "rows", "length"),
    positions: declare("slotPositions", "rows", "length"),
    ofTokens: declare("tokenSlots", "tokens"),
  };
  const ends = declare("lastTokens", "rows");
  const endPositions = declare("lastPositions", "rows", 1);
  const inverse = addInput(graph, "inverseTemperature", "float32", ["rows", 1]);
  const pastMask = addInput(graph, "promptMask", "float32", ["rows", 1, 1, 1, "past"]);
  const pastPositions = hasWindow(config) ? declare(PAST_POSITIONS, 1, "past") : undefined;
  /** What some queries of each row, at these positions, see. */
  const seenFrom = (queries: Tensor, window: number | undefined): Masks => {
    const count = queries.shape[1]!;
    const shaped = (mask: Tensor, width: string) => reshape(mask, ["rows", 1, 1, count, width]);
    const past = (size: number) => shaped(causalMask(queries, pastPositions!, size), "past");
    return {
      past: window === undefined ? pastMask : elementwise("Add", past(window), pastMask),
      new: shaped(causalMask(queries, slots.positions, window), "length"),
    };
  };
  const slotMasks = byWindow(config, (window) => seenFrom(slots.positions, window));
  const results = new Map<string, Tensor>();
  const last = config.layers - 1;
  let x = embed(context, ids);
  for (const index of layersOf(config)) {
    const normed = attentionInput(context, index, x);
    const [newKeys, newValues] = (["key", "value"] as const).map((which) =>
      project(context, index, which, normed, positions),
    ) as [Tensor, Tensor];
    results.set(cacheNames.newKeys(index), newKeys);
    results.set(cacheNames.newValues(index), newValues);
    const [keys, values] = [inSlots(newKeys, slots), inSlots(newValues, slots)];
    if (index < last) {
      const plain = project(context, index, "query", normed, positions);
      const q = inSlots(plain, slots);
      const attended = attendPast(config, index, { q, keys, values, masks: slotMasks(index) });
      x = finishLayer(context, index, x, selectRows(attended, slots.ofTokens));
      continue;
    }
    const wide = cast(endPositions, "int64");
    const q = project(context, index, "query", selectRows(normed, ends), wide);
    const masks = seenFrom(endPositions, windowOf(config, index));
    const attended = attendPast(config, index, { q, keys, values, masks });
    x = finishLayer(context, index, selectRows(x, ends), attended);
  }
  const allowed = allowedTokens(graph, config, "rows", masked);
  for (const [name, tensor] of distribution(context, finish(context, x), inverse, allowed))
    results.set(name, tensor);
  return finishProgram(graph, results);
}

/** Name of the cached tokens' positions among the inputs, if a layer has a window. */
export const PAST_POSITIONS = "pastPositions";

export function hasWindow(config: ModelConfig): boolean {
  return windowsOf(config).some((window) => window !== undefined);
}

/** The places of new tokens in their rows; those behind a row's last token are padding. */
interface Slots {
  /** [rows, length]: the token in each slot, any for padding. */
  readonly tokens: Tensor;
  /** [rows, length]: a padding slot comes after everything, so that causality hides it. */
  readonly positions: Tensor;
  /** [tokens]: the slot of each token. */
  readonly ofTokens: Tensor;
}

/** Heads of tokens [tokens, heads, 1, size] in slots: [rows, heads, length, size]. */
function inSlots(x: Tensor, slots: Slots): Tensor {
  const [, heads, , size] = x.shape as readonly [Dimension, number, number, number];
  const byRow = reshape(gather(x, slots.tokens), ["rows", "length", heads, size]);
  return transpose(byRow, [0, 2, 1, 3]);
}

/** What queries see of the cached tokens [rows, 1, 1, queries, past] and of the new ones. */
interface Masks {
  readonly past: Tensor;
  readonly new: Tensor;
}

/**
 * Attention of new tokens to the cached ones before them and, causally, to one another: [rows · queries,
 * heads · headSize].
 */
function attendPast(
  config: ModelConfig,
  index: number,
  now: {
    /** [rows, heads, queries, headSize] */
    readonly q: Tensor;
    /** [rows, kvHeads, length, headSize] */
    readonly keys: Tensor;
    readonly values: Tensor;
    readonly masks: Masks;
  },
): Tensor {
  const { kvHeads, heads, headSize } = config;
  const times = heads / kvHeads;
  const { graph } = now.q;
  const queries = now.q.shape[2]!;
  const past = (name: string) =>
    addInput(graph, name, "float32", ["rows", kvHeads, 1, "past", headSize]);
  const pastKeys = past(cacheNames.promptKeys(index));
  const pastValues = past(cacheNames.promptValues(index));
  const shared = (x: Tensor) => reshape(x, ["rows", kvHeads, 1, "length", headSize]);
  // Heads that share keys and values lie next to each other along their own axis.
  const scaled = withNumber("Mul", now.q, attentionScale(config));
  const q = reshape(scaled, ["rows", kvHeads, times, queries, headSize]);
  const scores = (keys: Tensor) => fusedMatMul(q, keys, { transB: true });
  const toPast = elementwise("Add", scores(pastKeys), now.masks.past);
  const toNew = elementwise("Add", scores(shared(now.keys)), now.masks.new);
  const weights = softmax(concat([toPast, toNew], 4, "all"));
  const [onPast, onNew] = splitInto(weights, 4, ["past", "length"]) as readonly [Tensor, Tensor];
  const fromPast = matMul(onPast, pastValues);
  const fromNew = matMul(onNew, shared(now.values));
  const sum = elementwise("Add", fromPast, fromNew);
  if (queries === 1) return reshape(sum, ["rows", heads * headSize]);
  const byToken = transpose(reshape(sum, ["rows", heads, queries, headSize]), [0, 2, 1, 3]);
  return reshape(byToken, ["slots", heads * headSize]);
}
