/** What was read and sampled lately, kept in case a later prompt goes on from there. */
import type { RowCache } from "./key-value-cache.js";

/** Bytes of keys and values to keep at most; what was kept longest goes first. */
const MAX_BYTES = 512 * 2 ** 20;
/** Rows are found by their first tokens; a row of fewer is read again faster than it is looked for. */
const SIGNATURE = 16;

/** Tokens with their keys and values. */
export interface Remembered {
  readonly ids: readonly number[];
  readonly cache: RowCache;
}

/** Remembers rows by their tokens. */
export interface Memory {
  remember(row: Remembered): void;
  /** The longest row that the prompt goes on from; it is handed over and no longer kept. */
  recall(prompt: ArrayLike<number>): Remembered | undefined;
  /** Forgets everything, because the weights have changed. */
  forget(): void;
}

/** An empty memory. */
export function createMemory(): Memory {
  const rows = new Map<string, Remembered[]>();
  let bytes = 0;
  const drop = (signature: string, row: Remembered): void => {
    const left = rows.get(signature)!.filter((other) => other !== row);
    if (left.length === 0) rows.delete(signature);
    else rows.set(signature, left);
    bytes -= sizeOf(row.cache);
  };
  return {
    remember(row) {
      if (row.ids.length < SIGNATURE) return;
      const signature = signatureOf(row.ids);
      rows.set(signature, [...(rows.get(signature) ?? []), row]);
      bytes += sizeOf(row.cache);
      while (bytes > MAX_BYTES) {
        const [oldest, [first]] = rows.entries().next().value!;
        drop(oldest, first!);
      }
    },
    recall(prompt) {
      const signature = signatureOf(prompt);
      const fitting = (rows.get(signature) ?? []).filter(({ ids }) => begins(prompt, ids));
      const row = fitting.reduce<Remembered | undefined>(
        (best, next) => (best === undefined || next.ids.length > best.ids.length ? next : best),
        undefined,
      );
      if (row !== undefined) drop(signature, row);
      return row;
    },
    forget() {
      rows.clear();
      bytes = 0;
    },
  };
}

function signatureOf(ids: ArrayLike<number>): string {
  return Array.from({ length: SIGNATURE }, (_, i) => ids[i]).join();
}

/** Whether the prompt begins with these tokens and has at least one more. */
function begins(prompt: ArrayLike<number>, ids: readonly number[]): boolean {
  return prompt.length > ids.length && ids.every((id, i) => prompt[i] === id);
}

function sizeOf({ keys, values }: RowCache): number {
  return [...keys, ...values].reduce((sum, array) => sum + array.byteLength, 0);
}
