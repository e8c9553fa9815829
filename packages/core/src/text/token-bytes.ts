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
export type TokenBytes = (id: number) => Uint8Array | undefined;

/** Where the spellings of tokens are. */
export interface Spellings {
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
