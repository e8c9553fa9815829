/**
 * Encodes the parts of a text as one text, with the ids that any other program gives it.
 *
 * A token that begins in one part and ends in another belongs to the one that it begins in. Only
 * parts that say so may write special tokens: where another part spells one, or part of one, the
 * text is cut inside it, so that a web page that contains `<|im_end|>` does not end the model's turn.
 */

/** The bytes that each token of a vocabulary stands for. */

/**
 * The printable character for each byte in a byte-level vocabulary: the byte itself if it is
 * printable, otherwise the next one from U+0100 on. Every byte-level tokenizer uses this table.
 */
export const byteCharacters: readonly string[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCodePoint(printable ? byte : next++);
  });
})();

const byteOf = new Map(byteCharacters.map((character, byte) => [character, byte]));

/** A token's bytes, if its spelling tells them. */
type TokenBytes = (id: number) => Uint8Array | undefined;

/** Where the spellings of tokens are. */
interface Spellings {
  /** Whether the vocabulary spells bytes, or text with ▁ for a blank and `<0x0A>` for other bytes. */
  readonly byteLevel: boolean;
  /** Tokens that stand for their spelling. */
  readonly added: ReadonlySet<string>;
  spelling(id: number): string | undefined;
}

/** The bytes of tokens, each worked out once. */
export function tokenBytes({ byteLevel, added, spelling }: Spellings): TokenBytes {
  const known = new Map<number, Uint8Array | undefined>();
  const read = (id: number): Uint8Array | undefined => {
    const token = spelling(id);
    if (token === undefined) return undefined;
    if (added.has(token)) return Buffer.from(token);
    if (byteLevel) {
      const bytes = Array.from(token, (character) => byteOf.get(character));
      return bytes.includes(undefined) ? undefined : Uint8Array.from(bytes as number[]);
    }
    const hex = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1];
    return hex === undefined
      ? Buffer.from(token.replaceAll("▁", " "))
      : Uint8Array.of(Number.parseInt(hex, 16));
  };
  return (id) => {
    if (!known.has(id)) known.set(id, read(id));
    return known.get(id);
  };
}

const isBlank = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);

/**
 * Where each token begins in a text, in bytes; undefined if the tokens do not spell the text. Some
 * tokenizers put a blank before a text, and some special tokens take the white space beside them.
 */
export function tokenStarts(
  text: Uint8Array,
  tokens: readonly (Uint8Array | undefined)[],
): readonly number[] | undefined {
  const stands = (token: Uint8Array, at: number): boolean =>
    at + token.length <= text.length && token.every((byte, i) => byte === text[at + i]);
  const starts: number[] = [];
  let at = 0;
  for (const token of tokens) {
    if (token === undefined) return undefined;
    let length = token.length;
    if (!stands(token, at)) {
      if (token[0] === 0x20 && stands(token.subarray(1), at)) length--;
      else {
        while (at < text.length && isBlank(text[at]!) && !stands(token, at)) at++;
        if (!stands(token, at)) return undefined;
      }
    }
    starts.push(at);
    at += length;
  }
  return text.subarray(at).every(isBlank) ? starts : undefined;
}

/** The tokens of texts that were encoded lately. */

const cacheEntries = 20_000;
const cacheableLength = 4_000;

/**
 * Caches the ids of short texts: rollouts encode the same goals, lists and observations again and
 * again.
 */
export function cachedEncoding(encode: (text: string) => readonly number[]): typeof encode {
  const memory = new Map<string, readonly number[]>();
  return (text) => {
    const known = memory.get(text);
    if (known !== undefined) return known;
    const ids = Object.freeze(encode(text));
    if (text.length <= cacheableLength) {
      if (memory.size >= cacheEntries) memory.clear();
      memory.set(text, ids);
    }
    return ids;
  };
}

/** A part of a text. */
export interface TextPart {
  readonly text: string;
  /** Whether it may write special tokens. */
  readonly special: boolean;
}

/** The ids of parts. */
export interface EncodedParts {
  readonly ids: readonly number[];
  /** For each part, how many ids begin in it or before it. */
  readonly ends: readonly number[];
}

/** What is known of a tokenizer. */
export interface WholeTextOptions {
  readonly specials: readonly string[];
  readonly bytesOf: TokenBytes;
  /**
   * Whether what stands between special tokens is encoded by itself: then its ids can be kept, and
   * nothing depends on what came before.
   */
  readonly independent: boolean;
  id(token: string): number | undefined;
  /** Ids of a text in which special tokens are special, or are not. */
  encode(text: string, options: { readonly plain: boolean }): readonly number[];
}

interface Stretch {
  readonly start: number;
  readonly text: string;
  readonly ids: readonly number[];
}

/** The encoder of a tokenizer; `after` is the text of the special token before the parts. */
export function wholeTextEncoder(
  options: WholeTextOptions,
): (parts: readonly TextPart[], after?: string) => EncodedParts {
  const { independent } = options;
  const pattern = specialPattern(options.specials);
  const encode = (parts: readonly TextPart[]): EncodedParts => {
    let length = 0;
    const ends = parts.map((part) => {
      length += part.text.length;
      return length;
    });
    const text = parts.map((part) => part.text).join("");
    const found = pattern === undefined ? [] : spelled(text, pattern, parts, ends);
    const cut = independent ? splitAt(text, found, options) : cutInside(text, found, options);
    return countIds(cut, ends, options.bytesOf) ?? encodeApart(parts, options);
  };
  return (parts, after) => {
    if (after === undefined || independent) return encode(parts);
    const { ids, ends } = encode([{ text: after, special: true }, ...parts]);
    if (ends[0] !== 1 || ids[0] !== options.id(after)) return encode(parts);
    return { ids: ids.slice(1), ends: ends.slice(1).map((end) => end - 1) };
  };
}

/** The ids of each part by itself. */
export function encodeApart(
  parts: readonly TextPart[],
  { encode }: Pick<WholeTextOptions, "encode">,
): EncodedParts {
  const ids: number[] = [];
  const ends: number[] = [];
  for (const { text, special } of parts) {
    for (const id of encode(text, { plain: !special })) ids.push(id);
    ends.push(ids.length);
  }
  return { ids, ends };
}

/** Finds special tokens, the longest first; undefined if there are none to be mistaken for text. */
export function specialPattern(specials: readonly string[]): RegExp | undefined {
  const long = specials.filter((token) => token.length > 1);
  if (long.length === 0) return undefined;
  const longestFirst = [...long].sort((a, b) => b.length - a.length);
  return new RegExp(
    longestFirst.map((token) => token.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"),
    "gu",
  );
}

/** A special token that a text spells, and whether one part that may do so writes all of it. */
interface Spelled {
  readonly at: number;
  readonly token: string;
  readonly isMeant: boolean;
}

function spelled(
  text: string,
  pattern: RegExp,
  parts: readonly TextPart[],
  ends: readonly number[],
): readonly Spelled[] {
  const found: Spelled[] = [];
  let part = 0;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [token] = match;
    const at = match.index;
    while (ends[part]! <= at) part++;
    const isMeant = parts[part]!.special && at + token.length <= ends[part]!;
    found.push({ at, token, isMeant });
    // What is not meant is cut after its first character, and another may begin there.
    if (!isMeant) pattern.lastIndex = at + firstOf(token).length;
  }
  return found;
}

const firstOf = (text: string): string => String.fromCodePoint(text.codePointAt(0)!);

/** The special tokens that are meant, and what stands between them. */
function splitAt(
  text: string,
  found: readonly Spelled[],
  { encode, id }: WholeTextOptions,
): readonly Stretch[] {
  const stretches: Stretch[] = [];
  let start = 0;
  const between = (end: number): void => {
    const part = text.slice(start, end);
    if (part !== "") stretches.push({ start, text: part, ids: encode(part, { plain: true }) });
  };
  for (const { at, token } of found.filter(({ isMeant }) => isMeant)) {
    between(at);
    stretches.push({ start: at, text: token, ids: [id(token)!] });
    start = at + token.length;
  }
  between(text.length);
  return stretches;
}

/** The text in one, cut inside the special tokens that are not meant. */
function cutInside(
  text: string,
  found: readonly Spelled[],
  { encode }: WholeTextOptions,
): readonly Stretch[] {
  const cuts = found
    .filter(({ isMeant }) => !isMeant)
    .map(({ at, token }) => at + firstOf(token).length);
  return [0, ...cuts]
    .map((start, i) => ({ start, text: text.slice(start, cuts[i] ?? text.length) }))
    .filter((stretch) => stretch.text !== "")
    .map((stretch) => ({ ...stretch, ids: encode(stretch.text, { plain: false }) }));
}

/** How many ids begin before each end; undefined if the ids do not spell the text. */
function countIds(
  stretches: readonly Stretch[],
  ends: readonly number[],
  bytesOf: TokenBytes,
): EncodedParts | undefined {
  const ids: number[] = [];
  const counts: number[] = [];
  for (const stretch of stretches) {
    const from = ids.length;
    const end = stretch.start + stretch.text.length;
    while (counts.length < ends.length && ends[counts.length]! <= stretch.start) counts.push(from);
    const inside = ends.slice(counts.length).filter((one) => one < end);
    const begun = inside.length === 0 ? [] : begunBefore(stretch, inside, bytesOf);
    if (begun === undefined) return undefined;
    for (const count of begun) counts.push(from + count);
    for (const id of stretch.ids) ids.push(id);
  }
  while (counts.length < ends.length) counts.push(ids.length);
  return { ids, ends: counts };
}

/** How many of a stretch's ids begin before each place in it. */
function begunBefore(
  { start, text, ids }: Stretch,
  places: readonly number[],
  bytesOf: TokenBytes,
): readonly number[] | undefined {
  const tokens = ids.map(bytesOf);
  // Most tokenizers take a text as it is, and many of the others compose its characters.
  for (const form of [(one: string) => one, (one: string) => one.normalize("NFC")]) {
    const starts = tokenStarts(Buffer.from(form(text)), tokens);
    if (starts === undefined) continue;
    return places.map((place) => {
      const before = Buffer.byteLength(form(text.slice(0, place - start)));
      const count = starts.findIndex((one) => one >= before);
      return count < 0 ? ids.length : count;
    });
  }
  return undefined;
}
