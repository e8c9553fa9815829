/**
 * The parts of a transformer with hand-written derivatives, in as few passes over memory as ONNX
 * operators allow: outside the matrix products, training is bound by those passes.
 */
import {
  emit,
  emitAll,
  floatConstant,
  floatVector,
  intVector,
  record,
  type Tensor,
} from "./graph.js";
import {
  broadcasting,
  cast,
  compare,
  concat,
  elementwise,
  expandTo,
  fusedMatMul,
  MICROSOFT,
  matMul,
  part,
  reduce,
  scatterAdd,
  softmax,
  split,
  transpose,
  unary,
  unsqueeze,
  where,
  withNumber,
} from "./operators.js";

/** RMSNorm of x [n, d]: x / √(mean x² + ε) · weight. */
export function rmsNorm(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  const [y, inverse] = emitAll({
    op: "SimplifiedLayerNormalization",
    inputs: [x, weight],
    attributes: { axis: { int: -1 }, epsilon: { float: epsilon }, stash_type: { int: 1 } },
    shape: x.shape,
    more: [[x.shape[0]!, 1]],
  }) as readonly [Tensor, Tensor];
  record({
    inputs: [x, weight],
    outputs: [y],
    backward: (gradients, gradient) => {
      const product = elementwise("Mul", gradient!, x);
      // Sums over rows and columns are written as products with vectors: column reductions are
      // slow.
      if (gradients.wants(weight)) {
        const sums = matMul(transpose(inverse, [1, 0]), product);
        const axis = intVector(sums.graph, [0]);
        const inputs = [sums, axis];
        gradients.add(weight, emit({ op: "Squeeze", inputs, shape: weight.shape }));
      }
      if (!gradients.wants(x)) return;
      // dx = r g w - x r³ mean(g w x), with r the inverse root.
      const scale = 1 / (x.shape[1] as number);
      const mean = fusedMatMul(product, unsqueeze(weight, [1]), { scale });
      const cube = elementwise("Mul", inverse, elementwise("Mul", inverse, inverse));
      const across = elementwise("Mul", x, elementwise("Mul", mean, cube));
      const scaled = elementwise("Mul", elementwise("Mul", gradient!, weight), inverse);
      gradients.add(x, elementwise("Sub", scaled, across));
    },
  });
  return y;
}

/** Position tables for `rotate`: cosines and sines [positions, size / 2]. */
export interface RotaryTables {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/** Rotary position embedding of x [rows, length, heads · size] at positions [rows, length]. */
export function rotate(x: Tensor, positions: Tensor, tables: RotaryTables, heads: number): Tensor {
  const rotary = (input: Tensor, sin: Tensor) =>
    emit({
      op: "RotaryEmbedding",
      domain: MICROSOFT,
      inputs: [input, positions, tables.cos, sin],
      attributes: { num_heads: { int: heads } },
      shape: x.shape,
    });
  const y = rotary(x, tables.sin);
  record({
    inputs: [x],
    outputs: [y],
    // The opposite rotation undoes a rotation and carries its gradient back.
    backward: (gradients, gradient) =>
      gradients.add(x, rotary(gradient!, unary("Neg", tables.sin))),
  });
  return y;
}

/**
 * softmax(scale · q kᵀ + mask) v for q, k, v [rows, heads, length, size].
 *
 * There is one mask for each block of queries, in order. A block cannot see anything after it, so
 * mask i of n is [rows, 1, length / n, length (i + 1) / n] and scores beyond it are never computed.
 */
export function attention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  masks: readonly Tensor[],
  scale: number,
): Tensor {
  const count = masks.length;
  const [queries, keys, values] = [q, k, v].map((x) => split(x, 2, count)) as [
    readonly Tensor[],
    readonly Tensor[],
    readonly Tensor[],
  ];
  const blocks = masks.map((mask, i) => {
    const upToHere = (whole: Tensor, parts: readonly Tensor[]) =>
      i === count - 1 ? whole : concat(parts.slice(0, i + 1), 2, mask.shape[3]!);
    const seen = { keys: upToHere(k, keys), values: upToHere(v, values) };
    const query = queries[i]!;
    const scores = fusedMatMul(query, seen.keys, { transB: true, scale });
    const weights = softmax(elementwise("Add", scores, mask));
    return { query, ...seen, weights, y: matMul(weights, seen.values) };
  });
  const y = concat(
    blocks.map((block) => block.y),
    2,
    q.shape[2]!,
  );
  record({
    inputs: [q, k, v],
    outputs: [y],
    backward: (gradients, gradient) => {
      const toQueries: Tensor[] = [];
      const toKeys: Tensor[] = [];
      const toValues: Tensor[] = [];
      // A block of keys is seen by its own queries and by all later ones.
      const spread = (sums: Tensor[], x: Tensor, i: number) => {
        for (const [j, part] of split(x, 2, i + 1, keys[0]!.shape[2]!).entries())
          sums[j] = sums[j] === undefined ? part : elementwise("Add", sums[j], part);
      };
      const parts = split(gradient!, 2, count);
      for (const [i, block] of blocks.entries()) {
        const g = parts[i]!;
        spread(toValues, fusedMatMul(block.weights, g, { transA: true }), i);
        // Σ_j dw_ij w_ij equals Σ g_i y_i, which is a smaller tensor.
        const inner = reduce("ReduceSum", elementwise("Mul", g, block.y), [3]);
        const toWeights = fusedMatMul(g, block.values, { transB: true });
        const toScores = elementwise("Mul", block.weights, elementwise("Sub", toWeights, inner));
        toQueries.push(fusedMatMul(toScores, block.keys, { scale }));
        spread(toKeys, fusedMatMul(toScores, block.query, { transA: true, scale }), i);
      }
      const length = q.shape[2]!;
      gradients.add(v, concat(toValues, 2, length));
      gradients.add(q, concat(toQueries, 2, length));
      gradients.add(k, concat(toKeys, 2, length));
    },
  });
  return y;
}

/** silu(gate) · up. */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  const silu = emit({
    op: "QuickGelu",
    domain: MICROSOFT,
    inputs: [gate],
    attributes: { alpha: { float: 1 } },
    shape: gate.shape,
  });
  return gated(gate, up, silu, (g, y) => {
    // silu'(x) up = σ(x) (1 + x (1 - σ(x))) up = σ(x) (up - y) + y: fewest passes over memory.
    const through = elementwise("Mul", unary("Sigmoid", gate), elementwise("Sub", up, y));
    return elementwise("Mul", g, elementwise("Add", through, y));
  });
}

/** gelu(gate) · up, with the GELU approximated by tanh. */
export function geglu(gate: Tensor, up: Tensor): Tensor {
  const gelu = emit({
    op: "Gelu",
    inputs: [gate],
    attributes: { approximate: { string: "tanh" } },
    shape: gate.shape,
  });
  return gated(gate, up, gelu, (g) => {
    // gelu(x) = x h with h = (1 + t) / 2 and t = tanh(c (x + a x³)), so gelu'(x) =
    // h (1 + x (1 - t) c (1 + 3 a x²)).
    const [a, c] = [0.044715, Math.sqrt(2 / Math.PI)];
    const square = elementwise("Mul", gate, gate);
    const along = (factor: number) =>
      elementwise("Mul", gate, withNumber("Add", withNumber("Mul", square, factor * c * a), c));
    const t = unary("Tanh", along(1));
    const half = withNumber("Add", withNumber("Mul", t, 0.5), 0.5);
    const rest = elementwise("Mul", along(3), withNumber("Add", unary("Neg", t), 1));
    const slope = elementwise("Mul", half, withNumber("Add", rest, 1));
    return elementwise("Mul", elementwise("Mul", g, up), slope);
  });
}

/** activated · up, where `toGate` carries the result's gradient back through the activation. */
function gated(
  gate: Tensor,
  up: Tensor,
  activated: Tensor,
  toGate: (gradient: Tensor, y: Tensor) => Tensor,
): Tensor {
  const y = elementwise("Mul", activated, up);
  record({
    inputs: [gate, up],
    outputs: [y],
    backward: (gradients, gradient) => {
      if (gradients.wants(up)) gradients.add(up, elementwise("Mul", gradient!, activated));
      if (gradients.wants(gate)) gradients.add(gate, toGate(gradient!, y));
    },
  });
  return y;
}

/** Results of the output head for each target token, as columns [n, 1]. */
export interface Predictions {
  readonly logprob: Tensor;
  readonly entropy: Tensor | undefined;
}

/**
 * Log-probability of each target id [n, 1] under softmax(hidden weightᵀ), and the distribution's
 * entropy.
 *
 * Only the softmax itself and, for the entropy, one more product go over [n, vocabulary]: the
 * gradient is folded into the two matrix products that follow.
 */
export function predict(
  hidden: Tensor,
  weight: Tensor,
  ids: Tensor,
  options: { readonly entropy: boolean; readonly allowed?: Tensor | undefined },
): Predictions {
  const all = fusedMatMul(hidden, weight, { transB: true });
  const { allowed } = options;
  // What is not allowed has no probability, and so no gradient.
  const logits =
    allowed === undefined ? all : where(allowed, all, floatVector(all.graph, [MASKED]));
  const probabilities = softmax(logits);
  const logSum = logSumExp(logits, probabilities);
  const chosen = emit({
    op: "GatherElements",
    inputs: [logits, ids],
    attributes: { axis: { int: 1 } },
    shape: [hidden.shape[0]!, 1],
  });
  const logprob = elementwise("Sub", chosen, logSum);
  const weighted = options.entropy
    ? elementwise("Mul", probabilities, elementwise("Sub", logits, logSum))
    : undefined;
  const entropy = weighted && unary("Neg", reduce("ReduceSum", weighted, [1]));
  record({
    inputs: [hidden, weight],
    outputs: [logprob, ...(entropy === undefined ? [] : [entropy])],
    backward: (gradients, toLogprob, toEntropy) => {
      const g = toLogprob ?? expandTo(floatConstant(logprob.graph, 0), logprob);
      const subtractAt = (matrix: Tensor, amount: Tensor) =>
        scatterAdd(matrix, ids, unary("Neg", amount), 1);
      if (toEntropy === undefined || weighted === undefined || entropy === undefined) {
        // -d logits / g = p - onehot; the factor g is applied to the narrow side of both products.
        const one = expandTo(floatConstant(logprob.graph, 1), logprob);
        const error = subtractAt(probabilities, one);
        const negative = unary("Neg", g);
        gradients.addProduct(weight, error, elementwise("Mul", hidden, negative));
        if (gradients.wants(hidden))
          gradients.add(hidden, elementwise("Mul", matMul(error, weight), negative));
        return;
      }
      // -d logits = p (g + h H) + h p log p - g onehot, with h the gradient of the entropy H.
      const factor = elementwise("Add", g, elementwise("Mul", toEntropy, entropy));
      const error = subtractAt(
        elementwise(
          "Add",
          elementwise("Mul", probabilities, factor),
          elementwise("Mul", weighted, toEntropy),
        ),
        g,
      );
      gradients.addProduct(weight, error, unary("Neg", hidden));
      if (gradients.wants(hidden)) gradients.add(hidden, fusedMatMul(error, weight, { scale: -1 }));
    },
  });
  return { logprob, entropy };
}

/**
 * log Σ exp along the last axis, from the softmax: the largest logit minus the log of its
 * probability.
 */
export function logSumExp(logits: Tensor, probabilities: Tensor): Tensor {
  const largest = reduce("ReduceMax", logits, [1]);
  const likeliest = reduce("ReduceMax", probabilities, [1]);
  return elementwise("Sub", largest, unary("Log", likeliest));
}

/**
 * The additive mask [rows, 1, queries, length] of causal attention, from the positions of queries
 * [rows, queries] and keys [rows, length] (or [1, length] for all rows): a token sees itself and
 * what came before it, in a window only the last tokens of it.
 */
export function causalMask(queries: Tensor, keys: Tensor, window?: number): Tensor {
  const { graph } = keys;
  const [query, key] = [unsqueeze(queries, [1, 3]), unsqueeze(keys, [1, 2])];
  const past = compare("GreaterOrEqual", query, key);
  const inWindow = (size: number) => {
    const end = elementwise("Add", key, cast(intVector(graph, [size]), key.type));
    return broadcasting("And", [past, compare("Less", query, end)], "bool");
  };
  const visible = window === undefined ? past : inWindow(window);
  return where(visible, floatVector(graph, [0]), floatVector(graph, [MASKED]));
}

/** The masks of causal attention for the given number of blocks, from positions [rows, length]. */
export function blockMasks(positions: Tensor, count: number, window?: number): readonly Tensor[] {
  const length = positions.shape[1]!;
  const blocks = split(positions, 1, count);
  return blocks.map((queries, i) =>
    causalMask(queries, concat(blocks.slice(0, i + 1), 1, part(length, i + 1, count)), window),
  );
}

/** Far below any score, so that its exponential is exactly zero, yet finite. */
export const MASKED = -1e30;
