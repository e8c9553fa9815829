/**
 * Attention over rows that hold a prefix and several suffixes: the prefix sees itself, a suffix sees the
 * prefix and itself, each only what comes before.
 */
import { record, type Tensor } from "./graph.js";
import { causalMask } from "./layers.js";
import {
  concat,
  elementwise,
  fusedMatMul,
  matMul,
  reduce,
  reshape,
  softmax,
  splitInto,
} from "./operators.js";

/** The places of tokens in their sequences: of prefixes, of suffixes, and in any one suffix. */
export interface SharedPlaces {
  /** [rows, prefix] */
  readonly prefix: Tensor;
  /** [rows, suffixes] for the tokens of all suffixes of a row. */
  readonly suffixes: Tensor;
  /** [1, suffix] */
  readonly own: Tensor;
}

export interface SharedMasks {
  /** [rows, 1, prefix, prefix] */
  readonly prefix: Tensor;
  /** [rows, 1, suffixes, prefix] */
  readonly toPrefix: Tensor;
  /** [1, 1, suffix, suffix] */
  readonly own: Tensor;
}

/** The masks of layers with such a window, or without. */
export function sharedMasks(places: SharedPlaces, window?: number): SharedMasks {
  return {
    prefix: causalMask(places.prefix, places.prefix, window),
    toPrefix: causalMask(places.suffixes, places.prefix, window),
    own: causalMask(places.own, places.own, window),
  };
}

/** softmax(scale · q kᵀ + mask) v for q, k, v [rows, heads, prefix + suffixes, size]. */
export function sharedAttention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  masks: SharedMasks,
  scale: number,
): Tensor {
  const [rows, heads] = q.shape as readonly [number, number, number, number];
  const prefix = masks.prefix.shape[2]!;
  const suffixes = masks.toPrefix.shape[2]!;
  const suffix = masks.own.shape[2]!;
  const cut = (x: Tensor) => splitInto(x, 2, [prefix, suffixes]) as readonly [Tensor, Tensor];
  /** Each suffix by itself, for x [rows, heads, suffixes, width]. */
  const apart = (x: Tensor, width = x.shape[3]!) =>
    reshape(x, [rows, heads, "each", suffix, width]);
  const flat = (x: Tensor) => reshape(x, [rows, heads, suffixes, x.shape[4]!]);
  const [qp, qs] = cut(q);
  const [kp, ks] = cut(k);
  const [vp, vs] = cut(v);
  const scores = (a: Tensor, b: Tensor) => fusedMatMul(a, b, { transB: true, scale });
  const weights = softmax(elementwise("Add", scores(qp, kp), masks.prefix));
  const yp = matMul(weights, vp);
  const toPrefix = elementwise("Add", scores(qs, kp), masks.toPrefix);
  const toOwn = elementwise("Add", scores(apart(qs), apart(ks)), masks.own);
  const all = softmax(concat([toPrefix, flat(toOwn)], 3, "all"));
  const [onPrefix, onOwn] = splitInto(all, 3, [prefix, suffix]) as readonly [Tensor, Tensor];
  const ys = elementwise(
    "Add",
    matMul(onPrefix, vp),
    flat(matMul(apart(onOwn, suffix), apart(vs))),
  );
  const length = q.shape[2]!;
  const y = concat([yp, ys], 2, length);
  record({
    inputs: [q, k, v],
    outputs: [y],
    backward: (gradients, gradient) => {
      const [gp, gs] = cut(gradient!);
      const transposed = (a: Tensor, b: Tensor, by = 1) =>
        fusedMatMul(a, b, { transA: true, scale: by });
      const innerOf = (g: Tensor, out: Tensor) =>
        reduce("ReduceSum", elementwise("Mul", g, out), [3]);
      const through = (on: Tensor, to: Tensor, inner: Tensor) =>
        elementwise("Mul", on, elementwise("Sub", to, inner));
      const plain = (a: Tensor, b: Tensor) => fusedMatMul(a, b, { transB: true });
      const inPrefix = through(weights, plain(gp, vp), innerOf(gp, yp));
      const inner = innerOf(gs, ys);
      const inSuffix = through(onPrefix, plain(gs, vp), inner);
      const inOwn = apart(through(onOwn, flat(plain(apart(gs), apart(vs))), inner), suffix);
      const join = (a: Tensor, b: Tensor) => concat([a, b], 2, length);
      gradients.add(
        v,
        join(
          elementwise("Add", transposed(weights, gp), transposed(onPrefix, gs)),
          flat(transposed(apart(onOwn, suffix), apart(gs))),
        ),
      );
      gradients.add(
        q,
        join(
          fusedMatMul(inPrefix, kp, { scale }),
          elementwise(
            "Add",
            fusedMatMul(inSuffix, kp, { scale }),
            flat(fusedMatMul(inOwn, apart(ks), { scale })),
          ),
        ),
      );
      gradients.add(
        k,
        join(
          elementwise("Add", transposed(inPrefix, qp, scale), transposed(inSuffix, qs, scale)),
          flat(transposed(inOwn, apart(qs), scale)),
        ),
      );
    },
  });
  return y;
}
