/**
 * A KV cache: keys and values of rows prefilled together, with spare capacity after each row for
 * its continuation. As long as the same rows continue together, only new tokens are copied.
 */
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { layersOf } from "./sampling-graphs.js";

/**
 * Keys and values [rows, kvHeads, capacity, headSize], by layer: what a head has of consecutive tokens lies
 * together, so that adding tokens touches few lines of memory.
 */
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
  const copied = (which: "keys" | "values") =>
    layersOf(config).map((index) => {
      const into = new Float32Array(width * (capacity + GROWTH)).subarray(0, width * capacity);
      rows.forEach(({ kv, row, tokens }, r) => {
        const from = kv[which][index]!;
        for (let h = 0; h < kvHeads; h++) {
          const begin = (row * kvHeads + h) * kv.capacity * headSize;
          into.set(
            from.subarray(begin, begin + tokens * headSize),
            (r * kvHeads + h) * capacity * headSize,
          );
        }
      });
      return into;
    });
  return {
    keys: copied("keys"),
    values: copied("values"),
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
  const moved = (array: Float32Array) => {
    order.forEach(({ row }, place) => {
      if (row !== place) array.copyWithin(place * size, row * size, (row + 1) * size);
    });
    const all = new Float32Array(array.buffer, array.byteOffset, width * grown);
    if (grown === kv.capacity) return all;
    // From the end, so that nothing is overwritten before it is moved.
    for (let b = rows.length * kvHeads - 1; b > 0; b--) {
      const from = b * kv.capacity * headSize;
      const count = order[Math.floor(b / kvHeads)]!.tokens * headSize;
      all.copyWithin(b * grown * headSize, from, from + count);
    }
    return all;
  };
  return {
    kv: {
      keys: kv.keys.map(moved),
      values: kv.values.map(moved),
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

/** New keys and values of one layer: head h of token t of a row at `start + t · token + h · headSize`. */
export interface NewTokens {
  readonly keys: Float32Array;
  readonly values: Float32Array;
  readonly count: number;
  readonly start: number;
  readonly token: number;
}

/** Writes new tokens of a row after those it has, for one layer; `tokens` is not updated. */
export function appendTokens(
  { kvHeads, headSize }: ModelConfig,
  { kv, row }: Omit<KvRow, "tokens">,
  index: number,
  { keys, values, count, start, token }: NewTokens,
): void {
  const [toKeys, toValues] = [kv.keys[index]!, kv.values[index]!];
  for (let h = 0; h < kvHeads; h++) {
    let to = ((row * kvHeads + h) * kv.capacity + kv.tokens[row]!) * headSize;
    // Number by number: to make views of so few takes longer than to copy them.
    for (let t = 0; t < count; t++) {
      const begin = start + t * token + h * headSize;
      for (let from = begin; from < begin + headSize; from++) {
        toKeys[to] = keys[from]!;
        toValues[to] = values[from]!;
        to += 1;
      }
    }
  }
}
