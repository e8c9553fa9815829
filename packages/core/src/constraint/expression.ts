/**
 * Expressions over bytes: the texts that an answer may be. They become automata (`automaton.ts`),
 * and those become masks over tokens.
 */

/** A set of texts, as bytes. */
export type Expression =
  | { readonly kind: "bytes"; readonly ranges: readonly ByteRange[] }
  | { readonly kind: "sequence"; readonly parts: readonly Expression[] }
  | { readonly kind: "choice"; readonly options: readonly Expression[] }
  | {
      readonly kind: "repeat";
      readonly part: Expression;
      readonly least: number;
      /** May be infinite. */
      readonly most: number;
    }
  | { readonly kind: "list"; readonly items: readonly ListItem[]; readonly separator: Expression }
  | { readonly kind: "automaton"; readonly automaton: Automaton };

/** A deterministic automaton. */
export interface Automaton {
  /** The class of each byte: bytes of one class are never told apart. */
  readonly classes: Uint8Array;
  readonly classCount: number;
  /** The next state for each state and class; -1 if there is none. */
  readonly next: Int32Array;
  /** 1 for states in which the text may end. */
  readonly accepting: Uint8Array;
}

/** Bytes from the first to the last. */
export type ByteRange = readonly [number, number];

/** An item of a list, which stands there in its order or not. */
export interface ListItem {
  readonly part: Expression;
  readonly required: boolean;
  /** It may stand there more than once. */
  readonly repeated?: boolean;
  /** Without it, nothing comes after it either. */
  readonly last?: boolean;
}

export const sequence = (...parts: readonly Expression[]): Expression => ({
  kind: "sequence",
  parts,
});
export const choice = (...options: readonly Expression[]): Expression => ({
  kind: "choice",
  options,
});
export const repeat = (
  part: Expression,
  least = 0,
  most = Number.POSITIVE_INFINITY,
): Expression => ({
  kind: "repeat",
  part,
  least,
  most,
});
export const optional = (part: Expression): Expression => repeat(part, 0, 1);
/** Items in order, those that are there separated. */
export const list = (items: readonly ListItem[], separator: Expression): Expression => ({
  kind: "list",
  items,
  separator,
});
export const bytes = (...ranges: readonly ByteRange[]): Expression => ({ kind: "bytes", ranges });
/** What an automaton accepts. */
export const accepted = (automaton: Automaton): Expression => ({ kind: "automaton", automaton });
/** The empty text. */
export const nothing = sequence();

/** Exactly this text. */
export function literal(text: string): Expression {
  return sequence(...Array.from(Buffer.from(text), (byte) => bytes([byte, byte])));
}

/** Code points from the first to the last. */
export type CodePoints = readonly [number, number];

/** The largest code point. */
export const LAST_CODE_POINT = 0x10ffff;

const UTF8_LENGTHS: readonly CodePoints[] = [
  [0, 0x7f],
  [0x80, 0x7ff],
  [0x800, 0xd7ff],
  // Surrogates are no characters.
  [0xe000, 0xffff],
  [0x10000, LAST_CODE_POINT],
];

/** One character of these ranges in UTF-8. */
export function character(ranges: readonly CodePoints[]): Expression {
  const options = ranges.flatMap(([from, to]) =>
    UTF8_LENGTHS.flatMap(([least, most]) => {
      const [low, high] = [Math.max(from, least), Math.min(to, most)];
      return low > high ? [] : utf8Ranges(encoded(low), encoded(high));
    }),
  );
  return choice(...options);
}

const encoded = (point: number): readonly number[] => [...Buffer.from(String.fromCodePoint(point))];

/** Texts of as many bytes between these two, as products of ranges. */
function utf8Ranges(low: readonly number[], high: readonly number[]): readonly Expression[] {
  const [first, ...lows] = low as [number, ...number[]];
  const [last, ...highs] = high as [number, ...number[]];
  if (lows.length === 0) return [bytes([first, last])];
  const rest = (from: readonly number[], to: readonly number[]) => choice(...utf8Ranges(from, to));
  const [bottom, top] = [lows.map(() => 0x80), lows.map(() => 0xbf)];
  if (first === last) return [sequence(bytes([first, first]), rest(lows, highs))];
  const isWhole = (ends: readonly number[], end: number) => ends.every((one) => one === end);
  const begin = isWhole(lows, 0x80) ? first : first + 1;
  const end = isWhole(highs, 0xbf) ? last : last - 1;
  return [
    ...(begin === first ? [] : [sequence(bytes([first, first]), rest(lows, top))]),
    ...(begin > end ? [] : [sequence(bytes([begin, end]), rest(bottom, top))]),
    ...(end === last ? [] : [sequence(bytes([last, last]), rest(bottom, highs))]),
  ];
}
