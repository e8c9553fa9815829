/** The index of the prefix cache: which replica holds the KV cache of which tokens. */

/** Maximum number of rows in the index; the oldest is evicted first. */
const MAX_ROWS = 4096;
/**
 * Rows are looked up by their first tokens; prefilling a shorter one again is faster than looking
 * it up.
 */
const SIGNATURE = 16;

/** Tokens, and where their keys and values are: which replica, and which handle. */
interface CachedPrefix {
  readonly ids: readonly number[];
  readonly replica: number;
  readonly handle: number;
}

/** A cached prefix of a prompt: the first tokens of a row. */
interface PrefixMatch extends Omit<CachedPrefix, "ids"> {
  readonly tokens: number;
}

/** Finds cached rows by their tokens. */
export interface PrefixIndex {
  insert(row: CachedPrefix): void;
  /**
   * For each prompt, the longest cached prefix, which is removed from the index.
   *
   * A prompt that continues a whole row gets that row first; the other prompts get what is left.
   * Text that is decoded and encoded again can have different tokens at its end, so a prompt may
   * diverge from its row some tokens before the row ends.
   */
  match(prompts: readonly (ArrayLike<number> | undefined)[]): readonly (PrefixMatch | undefined)[];
  /** Evicts everything, because the weights have changed. */
  clear(): void;
}

/** An empty index. */
export function createPrefixIndex(): PrefixIndex {
  const rows = new Map<string, CachedPrefix[]>();
  let count = 0;
  const drop = (signature: string, row: CachedPrefix): void => {
    const left = rows.get(signature)!.filter((other) => other !== row);
    if (left.length === 0) rows.delete(signature);
    else rows.set(signature, left);
    count -= 1;
  };
  return {
    insert(row) {
      if (row.ids.length < SIGNATURE) return;
      const signature = signatureOf(row.ids);
      rows.set(signature, [...(rows.get(signature) ?? []), row]);
      count += 1;
      while (count > MAX_ROWS) {
        const [oldest, [first]] = rows.entries().next().value!;
        drop(oldest, first!);
      }
    },
    match(prompts) {
      const matches = new Array<PrefixMatch | undefined>(prompts.length).fill(undefined);
      const take = (index: number, least: (row: CachedPrefix) => number) => {
        const prompt = prompts[index];
        if (prompt === undefined || matches[index] !== undefined) return;
        const signature = signatureOf(prompt);
        let [best, shared] = [undefined as CachedPrefix | undefined, 0];
        for (const row of rows.get(signature) ?? []) {
          const common = commonPrefix(prompt, row.ids);
          if (common >= least(row) && common > shared) [best, shared] = [row, common];
        }
        if (best === undefined) return;
        drop(signature, best);
        matches[index] = { replica: best.replica, handle: best.handle, tokens: shared };
      };
      for (const index of prompts.keys()) take(index, ({ ids }) => ids.length);
      for (const index of prompts.keys()) take(index, () => prompts[index]!.length / 2);
      return matches;
    },
    clear() {
      rows.clear();
      count = 0;
    },
  };
}

function signatureOf(ids: ArrayLike<number>): string {
  return Array.from({ length: SIGNATURE }, (_, i) => ids[i]).join();
}

/**
 * How many tokens a row shares with the beginning of a prompt; at least one prompt token is left
 * over.
 */
function commonPrefix(prompt: ArrayLike<number>, ids: readonly number[]): number {
  const most = Math.min(ids.length, prompt.length - 1);
  let count = 0;
  while (count < most && prompt[count] === ids[count]) count += 1;
  return count;
}
