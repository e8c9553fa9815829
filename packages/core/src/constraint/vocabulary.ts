/**
 * A vocabulary as masks need it: the bytes of every token, in their order, so that tokens with the
 * same beginning are looked at once. In shared memory, because every thread that samples reads it.
 */
import { createHash } from "node:crypto";

/** The bytes of a vocabulary's tokens. */
export interface Vocabulary {
  /** Two with the same tokens have the same key. */
  readonly key: string;
  /** Ids of the tokens that stand for text, in the order of their bytes. */
  readonly ids: Int32Array;
  /** Where each of them begins in `bytes`, and at last where they end. */
  readonly starts: Int32Array;
  readonly bytes: Uint8Array;
  /** How many bytes each has in common with the one before it. */
  readonly shared: Int32Array;
  /** Tokens that end an answer. */
  readonly endIds: readonly number[];
}

/** What is asked of a tokenizer. */
export interface TokenSource {
  readonly vocabularySize: number;
  readonly specialIds: ReadonlySet<number>;
  readonly endIds: readonly number[];
  tokenBytes(id: number): Uint8Array | undefined;
}

const known = new WeakMap<TokenSource, Vocabulary>();

/** The vocabulary of a tokenizer; special tokens stand for no text. */
export function vocabularyOf(source: TokenSource): Vocabulary {
  const made = known.get(source) ?? readVocabulary(source);
  known.set(source, made);
  return made;
}

function readVocabulary({
  vocabularySize,
  specialIds,
  endIds,
  tokenBytes,
}: TokenSource): Vocabulary {
  const tokens: { readonly id: number; readonly bytes: Buffer }[] = [];
  for (let id = 0; id < vocabularySize; id++) {
    const bytes = specialIds.has(id) || endIds.includes(id) ? undefined : tokenBytes(id);
    if (bytes !== undefined && bytes.length > 0) tokens.push({ id, bytes: Buffer.from(bytes) });
  }
  tokens.sort((a, b) => Buffer.compare(a.bytes, b.bytes) || a.id - b.id);
  const ids = sharedIntegers(tokens.length);
  const starts = sharedIntegers(tokens.length + 1);
  const shared = sharedIntegers(tokens.length);
  const total = tokens.reduce((sum, one) => sum + one.bytes.length, 0);
  const all = new Uint8Array(new SharedArrayBuffer(total));
  tokens.forEach(({ id, bytes }, at) => {
    const before = tokens[at - 1]?.bytes ?? Buffer.alloc(0);
    let same = 0;
    while (same < before.length && before[same] === bytes[same]) same++;
    ids[at] = id;
    shared[at] = same;
    all.set(bytes, starts[at]!);
    starts[at + 1] = starts[at]! + bytes.length;
  });
  const hash = createHash("sha256");
  for (const part of [ids, starts, all]) hash.update(Buffer.from(part.buffer));
  const key = hash.update(JSON.stringify(endIds)).digest("hex").slice(0, 32);
  return { key, ids, starts, bytes: all, shared, endIds: [...endIds] };
}

const sharedIntegers = (length: number): Int32Array =>
  new Int32Array(new SharedArrayBuffer(4 * length));
