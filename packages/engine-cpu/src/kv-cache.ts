/**
 * A KV cache: keys and values of rows prefilled together, with spare capacity after each row for
 * its continuation. As long as the same rows continue together, only new tokens are copied.
 */
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { layersOf } from "./sampling-graphs.js";

/** Keys [rows, kvHeads, headSize, capacity] and values [rows, kvHeads, capacity, headSize], by layer. */
export interface KvCache {
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
  /** Capacity of a row in tokens. */
  readonly capacity: number;
  /** Tokens read by each row; what follows them is undefined. */
  readonly tokens: Int32Array;
}

/** A row of a KV cache, of which the first `tokens` tokens are used. */
export interface KvRow {
  readonly kv: KvCache;
  readonly row: number;
  readonly tokens: number;
}

/** Extra tokens that a new KV cache allocates beyond its capacity, so that it can grow in place. */
const GROWTH = 128;

/** A new KV cache with copies of these rows. */
export function copyRows(config: ModelConfig, rows: readonly KvRow[], capacity: number): KvCache {
  const { kvHeads, headSize } = config;
  const width = rows.length * kvHeads * headSize;
  const copied = (which: "keys" | "values", blocks: number, blockWidth: number) =>
    layersOf(config).map((index) => {
      const into = new Float32Array(width * (capacity + GROWTH)).subarray(0, width * capacity);
      rows.forEach(({ kv, row, tokens }, r) => {
        const from = kv[which][index]!;
        for (let b = 0; b < blocks; b++) {
          const begin = (row * blocks + b) * kv.capacity * blockWidth;
          into.set(
            from.subarray(begin, begin + tokens * blockWidth),
            (r * blocks + b) * capacity * blockWidth,
          );
        }
      });
      return into;
    });
  return {
    keys: copied("keys", kvHeads * headSize, 1),
    values: copied("values", kvHeads, headSize),
    capacity,
    tokens: Int32Array.from(rows, ({ tokens }) => tokens),
  };
}

/**
 * Some rows of a KV cache as a KV cache of their own, with at least the given capacity. It uses the
 * same memory if that is enough and not far more; the other rows are then lost. Rows keep their places, except that
 * rows at the end fill the gaps; `order` says which row is now in which place.
 */
export function compactRows(
  config: ModelConfig,
  kv: KvCache,
  rows: readonly KvRow[],
  capacity: number,
): { readonly kv: KvCache; readonly order: readonly KvRow[] } {
  const { kvHeads, headSize } = config;
  const order = fillGaps(rows);
  const width = rows.length * kvHeads * headSize;
  const size = kvHeads * headSize * kv.capacity;
  const grown = Math.max(capacity, kv.capacity);
  const [{ byteLength, buffer }] = kv.keys as readonly [Float32Array];
  const needed = width * grown * BYTES;
  // A few rows must not keep the memory of many.
  if (needed > buffer.byteLength || needed < byteLength / 2)
    return { kv: copyRows(config, order, capacity), order };
  const moved = (blocks: number, blockWidth: number) => (array: Float32Array) => {
    order.forEach(({ row }, place) => {
      if (row !== place) array.copyWithin(place * size, row * size, (row + 1) * size);
    });
    const all = new Float32Array(array.buffer, array.byteOffset, width * grown);
    if (grown === kv.capacity) return all;
    // From the end, so that nothing is overwritten before it is moved.
    for (let b = rows.length * blocks - 1; b > 0; b--) {
      const from = b * kv.capacity * blockWidth;
      const count = order[Math.floor(b / blocks)]!.tokens * blockWidth;
      all.copyWithin(b * grown * blockWidth, from, from + count);
    }
    return all;
  };
  return {
    kv: {
      keys: kv.keys.map(moved(kvHeads * headSize, 1)),
      values: kv.values.map(moved(kvHeads, headSize)),
      capacity: grown,
      tokens: Int32Array.from(order, ({ tokens }) => tokens),
    },
    order,
  };
}

const BYTES = Float32Array.BYTES_PER_ELEMENT;

/** The rows by place: those in the first places stay, later ones fill the gaps between them. */
function fillGaps(rows: readonly KvRow[]): readonly KvRow[] {
  const order = new Array<KvRow | undefined>(rows.length).fill(undefined);
  for (const row of rows) if (row.row < rows.length) order[row.row] = row;
  const behind = rows.filter(({ row }) => row >= rows.length).values();
  return order.map((row) => row ?? behind.next().value!);
}

/** Where the numbers of one row's new tokens lie: head h of token t at `start + h·head + t·token`. */
interface Strides {
  readonly start: number;
  readonly head: number;
  readonly token: number;
  /** Distance between consecutive numbers of a head. */
  readonly next: number;
}

/** New keys and values of one layer, and where those of a row lie in them. */
export interface NewTokens {
  readonly keys: Float32Array;
  readonly values: Float32Array;
  readonly count: number;
  readonly keyAt: Strides;
  readonly valueAt: Strides;
}

/** Writes new tokens of a row after those it has, for one layer; `tokens` is not updated. */
export function appendTokens(
  config: ModelConfig,
  { kv, row }: Omit<KvRow, "tokens">,
  index: number,
  { keys, values, count, keyAt, valueAt }: NewTokens,
): void {
  const { kvHeads, headSize } = config;
  const start = kv.tokens[row]!;
  const block = headSize * kv.capacity;
  for (let h = 0; h < kvHeads; h++) {
    const begin = (row * kvHeads + h) * block;
    const keyTo = { start: begin + start, next: kv.capacity, token: 1 };
    const keyFrom = { ...keyAt, start: keyAt.start + h * keyAt.head };
    move(keys, keyFrom, kv.keys[index]!, keyTo, headSize, count);
    const valueTo = { start: begin + start * headSize, next: 1, token: headSize };
    const valueFrom = { ...valueAt, start: valueAt.start + h * valueAt.head };
    move(values, valueFrom, kv.values[index]!, valueTo, headSize, count);
  }
}

type Place = Omit<Strides, "head">;

/** Copies the numbers of one head for the given number of tokens. */
function move(
  from: Float32Array,
  source: Place,
  to: Float32Array,
  target: Place,
  size: number,
  count: number,
): void {
  for (let i = 0; i < size; i++) {
    let a = source.start + i * source.next;
    let b = target.start + i * target.next;
    for (let t = 0; t < count; t++) {
      to[b] = from[a]!;
      a += source.token;
      b += target.token;
    }
  }
}
