/** Where what was read and sampled lately is kept, in case a later prompt goes on from there. */

/** Rows to remember at most; what was kept longest goes first. */
const MAX_ROWS = 4096;
/** Rows are found by their first tokens; a row of fewer is read again faster than it is looked for. */
const SIGNATURE = 16;

/** Tokens, and where their keys and values are: in which lane, and under which number. */
export interface Remembered {
  readonly ids: readonly number[];
  readonly lane: number;
  readonly handle: number;
}

/** What a prompt goes on from: so many tokens of a row. */
export interface Recalled extends Omit<Remembered, "ids"> {
  readonly tokens: number;
}

/** Remembers rows by their tokens. */
export interface Memory {
  remember(row: Remembered): void;
  /**
   * For each prompt, what was read of its beginning, which is handed over and no longer kept.
   *
   * A prompt that goes on from a whole row gets it; then the others get what is left: text that is written out and
   * read in again can have other tokens at its end, so that a prompt leaves its row some tokens before the row ends.
   */
  recall(prompts: readonly (ArrayLike<number> | undefined)[]): readonly (Recalled | undefined)[];
  /** Forgets everything, because the weights have changed. */
  forget(): void;
}

/** An empty memory. */
export function createMemory(): Memory {
  const rows = new Map<string, Remembered[]>();
  let count = 0;
  const drop = (signature: string, row: Remembered): void => {
    const left = rows.get(signature)!.filter((other) => other !== row);
    if (left.length === 0) rows.delete(signature);
    else rows.set(signature, left);
    count -= 1;
  };
  return {
    remember(row) {
      if (row.ids.length < SIGNATURE) return;
      const signature = signatureOf(row.ids);
      rows.set(signature, [...(rows.get(signature) ?? []), row]);
      count += 1;
      while (count > MAX_ROWS) {
        const [oldest, [first]] = rows.entries().next().value!;
        drop(oldest, first!);
      }
    },
    recall(prompts) {
      const found = new Array<Recalled | undefined>(prompts.length).fill(undefined);
      const take = (index: number, least: (row: Remembered) => number) => {
        const prompt = prompts[index];
        if (prompt === undefined || found[index] !== undefined) return;
        const signature = signatureOf(prompt);
        let [best, shared] = [undefined as Remembered | undefined, 0];
        for (const row of rows.get(signature) ?? []) {
          const common = commonBeginning(prompt, row.ids);
          if (common >= least(row) && common > shared) [best, shared] = [row, common];
        }
        if (best === undefined) return;
        drop(signature, best);
        found[index] = { lane: best.lane, handle: best.handle, tokens: shared };
      };
      for (const index of prompts.keys()) take(index, ({ ids }) => ids.length);
      for (const index of prompts.keys()) take(index, () => prompts[index]!.length / 2);
      return found;
    },
    forget() {
      rows.clear();
      count = 0;
    },
  };
}

function signatureOf(ids: ArrayLike<number>): string {
  return Array.from({ length: SIGNATURE }, (_, i) => ids[i]).join();
}

/** How many tokens a row shares with the beginning of a prompt, which has at least one more. */
function commonBeginning(prompt: ArrayLike<number>, ids: readonly number[]): number {
  const most = Math.min(ids.length, prompt.length - 1);
  let count = 0;
  while (count < most && prompt[count] === ids[count]) count += 1;
  return count;
}
