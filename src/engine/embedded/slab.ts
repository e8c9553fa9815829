/**
 * Keys and values of rows read together, with room behind each row for what it reads next: as long as the same rows
 * go on together, nothing but new tokens is ever copied.
 */
import type { ModelConfig } from "../weights/model-config.js";
import { layersOf } from "./generation.js";

/** Keys [rows, kvHeads, headSize, room] and values [rows, kvHeads, room, headSize], by layer. */
export interface Slab {
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
  /** Tokens a row has room for. */
  readonly room: number;
  /** Tokens each row has read; what lies behind them means nothing. */
  readonly tokens: Int32Array;
}

/** A row of a slab, of which the first tokens are used. */
export interface SlabRow {
  readonly slab: Slab;
  readonly row: number;
  readonly tokens: number;
}

/** Tokens for which a new slab takes memory beside its room: what grows into it stays where it is. */
const GROWTH = 128;

/** A new slab of copies of these rows. */
export function copyRows(config: ModelConfig, rows: readonly SlabRow[], room: number): Slab {
  const { kvHeads, headSize } = config;
  const width = rows.length * kvHeads * headSize;
  const copied = (which: "keys" | "values", blocks: number, blockWidth: number) =>
    layersOf(config).map((index) => {
      const into = new Float32Array(width * (room + GROWTH)).subarray(0, width * room);
      rows.forEach(({ slab, row, tokens }, r) => {
        const from = slab[which][index]!;
        for (let b = 0; b < blocks; b++) {
          const begin = (row * blocks + b) * slab.room * blockWidth;
          into.set(
            from.subarray(begin, begin + tokens * blockWidth),
            (r * blocks + b) * room * blockWidth,
          );
        }
      });
      return into;
    });
  return {
    keys: copied("keys", kvHeads * headSize, 1),
    values: copied("values", kvHeads, headSize),
    room,
    tokens: Int32Array.from(rows, ({ tokens }) => tokens),
  };
}

/**
 * Some rows of a slab as a slab of their own, with at least so much room: in the same memory where that is enough, so
 * that the other rows are lost. Rows stay in their places, but for those at the end, which fill the gaps; `order`
 * tells which row has come to which place.
 */
export function closeUp(
  config: ModelConfig,
  slab: Slab,
  rows: readonly SlabRow[],
  room: number,
): { readonly slab: Slab; readonly order: readonly SlabRow[] } {
  const { kvHeads, headSize } = config;
  const order = fillGaps(rows);
  const width = rows.length * kvHeads * headSize;
  const size = kvHeads * headSize * slab.room;
  const grown = Math.max(room, slab.room);
  if (width * grown * BYTES > slab.keys[0]!.buffer.byteLength)
    return { slab: copyRows(config, order, room), order };
  const moved = (blocks: number, blockWidth: number) => (array: Float32Array) => {
    order.forEach(({ row }, place) => {
      if (row !== place) array.copyWithin(place * size, row * size, (row + 1) * size);
    });
    const all = new Float32Array(array.buffer, array.byteOffset, width * grown);
    if (grown === slab.room) return all;
    // From the end, so that nothing is written over that is still to be moved.
    for (let b = rows.length * blocks - 1; b > 0; b--) {
      const from = b * slab.room * blockWidth;
      const count = order[Math.floor(b / blocks)]!.tokens * blockWidth;
      all.copyWithin(b * grown * blockWidth, from, from + count);
    }
    return all;
  };
  return {
    slab: {
      keys: slab.keys.map(moved(kvHeads * headSize, 1)),
      values: slab.values.map(moved(kvHeads, headSize)),
      room: grown,
      tokens: Int32Array.from(order, ({ tokens }) => tokens),
    },
    order,
  };
}

const BYTES = Float32Array.BYTES_PER_ELEMENT;

/** The rows by place: those in the first places stay, those behind fill the gaps among them. */
function fillGaps(rows: readonly SlabRow[]): readonly SlabRow[] {
  const order = new Array<SlabRow | undefined>(rows.length).fill(undefined);
  for (const row of rows) if (row.row < rows.length) order[row.row] = row;
  const behind = rows.filter(({ row }) => row >= rows.length).values();
  return order.map((row) => row ?? behind.next().value!);
}

/** Where the numbers of one row's new tokens lie: head h of token t at `start + h·head + t·token`. */
export interface Strides {
  readonly start: number;
  readonly head: number;
  readonly token: number;
  /** From one number of a head to its next. */
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

/** Writes new tokens of a row behind those it has, for one layer; `tokens` is left as it is. */
export function writeTokens(
  config: ModelConfig,
  { slab, row }: Omit<SlabRow, "tokens">,
  index: number,
  { keys, values, count, keyAt, valueAt }: NewTokens,
): void {
  const { kvHeads, headSize } = config;
  const start = slab.tokens[row]!;
  const block = headSize * slab.room;
  for (let h = 0; h < kvHeads; h++) {
    const begin = (row * kvHeads + h) * block;
    const keyTo = { start: begin + start, next: slab.room, token: 1 };
    const keyFrom = { ...keyAt, start: keyAt.start + h * keyAt.head };
    move(keys, keyFrom, slab.keys[index]!, keyTo, headSize, count);
    const valueTo = { start: begin + start * headSize, next: 1, token: headSize };
    const valueFrom = { ...valueAt, start: valueAt.start + h * valueAt.head };
    move(values, valueFrom, slab.values[index]!, valueTo, headSize, count);
  }
}

type Place = Omit<Strides, "head">;

/** Copies the numbers of one head of so many tokens. */
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
