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
  type Shape,
  type Tensor,
} from "./graph.js";
import {
  concatAxis,
  elementwise,
  fusedMatmul,
  part,
  splitAxis,
  sumAxes,
  unary,
  withNumber,
} from "./ops.js";

const MICROSOFT = "com.microsoft";

/** RMSNorm of x [n, d]: x / √(mean x² + ε) · weight. */
export function rmsNorm(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  const column = [x.shape[0]!, 1];
  const width = x.shape[1] as number;
  const [y, inverse] = emitAll({
    op: "SimplifiedLayerNormalization",
    inputs: [x, weight],
    attributes: { axis: { int: -1 }, epsilon: { float: epsilon }, stash_type: { int: 1 } },
    shape: x.shape,
    more: [column],
  }) as readonly [Tensor, Tensor];
  record({
    inputs: [x, weight],
    outputs: [y],
    backward: (gradients, gradient) => {
      const product = elementwise("Mul", gradient!, x);
      // Sums over rows and columns are written as products with vectors: column reductions are
      // slow.
      if (gradients.wants(weight)) {
        const rows = emit({ op: "Transpose", inputs: [inverse], shape: [1, column[0]!] });
        const sums = emit({ op: "MatMul", inputs: [rows, product], shape: [1, width] });
        gradients.add(weight, flattened(sums, weight.shape));
      }
      if (!gradients.wants(x)) return;
      // dx = r g w - x r³ mean(g w x), with r the inverse root.
      const along = emit({
        op: "Unsqueeze",
        inputs: [weight, intVector(weight.graph, [1])],
        shape: [width, 1],
      });
      const mean = fusedMatmul(product, along, { scale: 1 / width }, column);
      const cube = elementwise("Mul", inverse, elementwise("Mul", inverse, inverse));
      const across = elementwise("Mul", x, elementwise("Mul", mean, cube));
      const scaled = elementwise("Mul", elementwise("Mul", gradient!, weight), inverse);
      gradients.add(x, elementwise("Sub", scaled, across));
    },
  });
  return y;
}

function flattened(row: Tensor, shape: Shape): Tensor {
  return emit({ op: "Squeeze", inputs: [row, intVector(row.graph, [0])], shape });
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
  const [queries, keys, values] = [q, k, v].map((x) => splitAxis(x, 2, count)) as [
    readonly Tensor[],
    readonly Tensor[],
    readonly Tensor[],
  ];
  const blocks = masks.map((mask, i) => {
    const seenKeys = i === count - 1 ? k : concatAxis(keys.slice(0, i + 1), 2, mask.shape[3]!);
    const seenValues = i === count - 1 ? v : concatAxis(values.slice(0, i + 1), 2, mask.shape[3]!);
    const query = queries[i]!;
    const square = [...query.shape.slice(0, 3), mask.shape[3]!];
    const scores = fusedMatmul(query, seenKeys, { transB: true, scale }, square);
    const weights = softmax(elementwise("Add", scores, mask));
    const y = emit({ op: "MatMul", inputs: [weights, seenValues], shape: query.shape });
    return { query, keys: seenKeys, values: seenValues, square, weights, y };
  });
  const y = concatAxis(
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
        for (const [j, part] of splitAxis(x, 2, i + 1, keys[0]!.shape[2]!).entries())
          sums[j] = sums[j] === undefined ? part : elementwise("Add", sums[j], part);
      };
      const parts = splitAxis(gradient!, 2, count);
      for (const [i, block] of blocks.entries()) {
        const g = parts[i]!;
        const { shape } = block.query;
        spread(toValues, fusedMatmul(block.weights, g, { transA: true }, block.values.shape), i);
        // Σ_j dw_ij w_ij equals Σ g_i y_i, which is a smaller tensor.
        const column = [...shape.slice(0, 3), 1];
        const inner = sumAxes(elementwise("Mul", g, block.y), [3], column, true);
        const toWeights = fusedMatmul(g, block.values, { transB: true }, block.square);
        const toScores = elementwise("Mul", block.weights, elementwise("Sub", toWeights, inner));
        toQueries.push(fusedMatmul(toScores, block.keys, { scale }, shape));
        const options = { transA: true, scale };
        spread(toKeys, fusedMatmul(toScores, block.query, options, block.keys.shape), i);
      }
      const length = q.shape[2]!;
      gradients.add(v, concatAxis(toValues, 2, length));
      gradients.add(q, concatAxis(toQueries, 2, length));
      gradients.add(k, concatAxis(toKeys, 2, length));
    },
  });
  return y;
}

/** softmax along the last axis, without a derivative. */
export function softmax(x: Tensor): Tensor {
  return emit({ op: "Softmax", inputs: [x], attributes: { axis: { int: -1 } }, shape: x.shape });
}

/** silu(gate) · up. */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  const activated = emit({
    op: "QuickGelu",
    domain: MICROSOFT,
    inputs: [gate],
    attributes: { alpha: { float: 1 } },
    shape: gate.shape,
  });
  const y = elementwise("Mul", activated, up);
  record({
    inputs: [gate, up],
    outputs: [y],
    backward: (gradients, gradient) => {
      const g = gradient!;
      if (gradients.wants(up)) gradients.add(up, elementwise("Mul", g, activated));
      if (!gradients.wants(gate)) return;
      // silu'(x) up = σ(x) (1 + x (1 - σ(x))) up = σ(x) (up - y) + y: fewest passes over memory.
      const through = elementwise("Mul", unary("Sigmoid", gate), elementwise("Sub", up, y));
      gradients.add(gate, elementwise("Mul", g, elementwise("Add", through, y)));
    },
  });
  return y;
}

/** gelu(gate) · up, with the GELU approximated by tanh. */
export function geglu(gate: Tensor, up: Tensor): Tensor {
  const activated = emit({
    op: "Gelu",
    inputs: [gate],
    attributes: { approximate: { string: "tanh" } },
    shape: gate.shape,
  });
  const y = elementwise("Mul", activated, up);
  record({
    inputs: [gate, up],
    outputs: [y],
    backward: (gradients, gradient) => {
      const g = gradient!;
      if (gradients.wants(up)) gradients.add(up, elementwise("Mul", g, activated));
      if (!gradients.wants(gate)) return;
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
      gradients.add(gate, elementwise("Mul", elementwise("Mul", g, up), slope));
    },
  });
  return y;
}

/** Results of the output head for each target token, as columns [n, 1]. */
export interface Predictions {
  readonly logprob: Tensor;
  readonly entropy?: Tensor;
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
  options: { readonly entropy: boolean },
): Predictions {
  const column = [hidden.shape[0]!, 1];
  const logits = fusedMatmul(hidden, weight, { transB: true }, [column[0]!, weight.shape[0]!]);
  const probabilities = softmax(logits);
  const logSum = logSumExp(logits, probabilities);
  const chosen = emit({
    op: "GatherElements",
    inputs: [logits, ids],
    attributes: { axis: { int: 1 } },
    shape: column,
  });
  const logprob = elementwise("Sub", chosen, logSum);
  const weighted = options.entropy
    ? elementwise("Mul", probabilities, elementwise("Sub", logits, logSum))
    : undefined;
  const entropy =
    weighted === undefined ? undefined : unary("Neg", sumAxes(weighted, [1], column, true));
  record({
    inputs: [hidden, weight],
    outputs: entropy === undefined ? [logprob] : [logprob, entropy],
    backward: (gradients, toLogprob, toEntropy) => {
      const g = toLogprob ?? filled(logprob, 0);
      const subtractAt = (matrix: Tensor, amount: Tensor) =>
        emit({
          op: "ScatterElements",
          inputs: [matrix, ids, unary("Neg", amount)],
          attributes: { axis: { int: 1 }, reduction: { string: "add" } },
          shape: matrix.shape,
        });
      if (toEntropy === undefined || weighted === undefined || entropy === undefined) {
        // -d logits / g = p - onehot; the factor g is applied to the narrow side of both products.
        const error = subtractAt(probabilities, filled(logprob, 1));
        const negative = unary("Neg", g);
        gradients.addProduct(weight, error, elementwise("Mul", hidden, negative));
        if (gradients.wants(hidden)) {
          const back = emit({ op: "MatMul", inputs: [error, weight], shape: hidden.shape });
          gradients.add(hidden, elementwise("Mul", back, negative));
        }
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
      if (gradients.wants(hidden))
        gradients.add(hidden, fusedMatmul(error, weight, { scale: -1 }, hidden.shape));
    },
  });
  return entropy === undefined ? { logprob } : { logprob, entropy };
}

/** A constant in the shape of a tensor. */
function filled(like: Tensor, value: number): Tensor {
  const size = emit({ op: "Shape", inputs: [like], type: "int64", shape: [like.shape.length] });
  return emit({
    op: "Expand",
    inputs: [floatConstant(like.graph, value), size],
    shape: like.shape,
  });
}

/**
 * log Σ exp along the last axis, from the softmax: the largest logit minus the log of its
 * probability.
 */
export function logSumExp(logits: Tensor, probabilities: Tensor): Tensor {
  const column = [logits.shape[0]!, 1];
  const largest = sumAxes(logits, [1], column, true, "ReduceMax");
  const likeliest = sumAxes(probabilities, [1], column, true, "ReduceMax");
  return elementwise("Sub", largest, unary("Log", likeliest));
}

/**
 * The additive mask [rows, 1, queries, length] of causal attention, from the positions of queries
 * [rows, queries] and keys [rows, length] (or [1, length] for all rows): a token sees itself and
 * what came before it, in a window only the last tokens of it.
 */
export function causalMask(queries: Tensor, keys: Tensor, window?: number): Tensor {
  const graph = keys.graph;
  const shape = [queries.shape[0]!, 1, queries.shape[1]!, keys.shape[1]!];
  const spread = (x: Tensor, axes: readonly [number, number]) =>
    emit({
      op: "Unsqueeze",
      inputs: [x, intVector(graph, axes)],
      type: x.type,
      shape: axes[1] === 3 ? [x.shape[0]!, 1, x.shape[1]!, 1] : [x.shape[0]!, 1, 1, x.shape[1]!],
    });
  const [query, key] = [spread(queries, [1, 3]), spread(keys, [1, 2])];
  const compare = (op: string, a: Tensor, b: Tensor) =>
    emit({ op, inputs: [a, b], type: "bool", shape });
  const past = compare("GreaterOrEqual", query, key);
  const visible =
    window === undefined ? past : compare("And", past, compare("Less", query, later(key, window)));
  return emit({
    op: "Where",
    inputs: [visible, floatVector(graph, [0]), floatVector(graph, [MASKED])],
    shape,
  });
}

/** Positions that many tokens later. */
function later(positions: Tensor, tokens: number): Tensor {
  const { graph, shape, type } = positions;
  const count = emit({
    op: "Cast",
    inputs: [intVector(graph, [tokens])],
    attributes: { to: { int: 6 } },
    type,
    shape: [1],
    graph,
  });
  return emit({ op: "Add", inputs: [positions, count], type, shape });
}

/** The masks of causal attention for the given number of blocks, from positions [rows, length]. */
export function blockMasks(positions: Tensor, count: number, window?: number): readonly Tensor[] {
  const length = positions.shape[1]!;
  const blocks = splitAxis(positions, 1, count);
  return blocks.map((queries, i) =>
    causalMask(queries, concatAxis(blocks.slice(0, i + 1), 1, part(length, i + 1, count)), window),
  );
}

/** Far below any score, so that its exponential is exactly zero, yet finite. */
export const MASKED = -1e30;
