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

/** A new slab of copies of these rows. */
export function copyRows(config: ModelConfig, rows: readonly SlabRow[], room: number): Slab {
  const { kvHeads, headSize } = config;
  const size = kvHeads * headSize * room;
  const copied = (which: "keys" | "values", blocks: number, width: number) =>
    layersOf(config).map((index) => {
      const into = new Float32Array(rows.length * size);
      rows.forEach(({ slab, row, tokens }, r) => {
        const from = slab[which][index]!;
        for (let b = 0; b < blocks; b++) {
          const begin = (row * blocks + b) * slab.room * width;
          into.set(from.subarray(begin, begin + tokens * width), (r * blocks + b) * room * width);
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

/** New keys and values of one row and layer, and how the numbers of a token lie in them. */
export interface NewTokens {
  readonly keys: Float32Array;
  readonly values: Float32Array;
  readonly count: number;
  /** Where token t has its keys of head h, the first of them and the distance to the next; and its values. */
  readonly keyAt: (t: number, h: number) => number;
  readonly keyStride: number;
  readonly valueAt: (t: number, h: number) => number;
}

/** Writes new tokens of a row behind those it has, for one layer; `tokens` is left as it is. */
export function writeTokens(
  config: ModelConfig,
  { slab, row }: Omit<SlabRow, "tokens">,
  index: number,
  added: NewTokens,
): void {
  const { kvHeads, headSize } = config;
  const [keys, values] = [slab.keys[index]!, slab.values[index]!];
  const start = slab.tokens[row]!;
  for (let h = 0; h < kvHeads; h++) {
    const head = (row * kvHeads + h) * headSize * slab.room;
    for (let t = 0; t < added.count; t++) {
      const [from, at] = [added.keyAt(t, h), added.valueAt(t, h)];
      for (let i = 0; i < headSize; i++) {
        keys[head + i * slab.room + start + t] = added.keys[from + i * added.keyStride]!;
        values[head + (start + t) * headSize + i] = added.values[at + i]!;
      }
    }
  }
}
