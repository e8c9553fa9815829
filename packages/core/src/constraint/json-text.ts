/** The texts of JSON that do not depend on a schema: white space, strings, any value. */
import {
  bytes,
  type CodePoints,
  character,
  choice,
  type Expression,
  LAST_CODE_POINT,
  type ListItem,
  list,
  literal,
  optional,
  repeat,
  sequence,
} from "./expression.js";

/** White space between members. It is bounded: a model might go on for ever with what changes nothing. */
export type Gap = Expression;

/** All on one line. */
export const oneLine: Gap = optional(literal(" "));

/** On one line, or on lines of their own with an indent. */
export const lines: Gap = choice(
  oneLine,
  sequence(literal("\n"), choice(repeat(literal(" "), 0, 16), repeat(literal("\t"), 1, 6))),
);

/** An item of a list, and whether it stands there (`ListItem`). */
export interface Entry extends Omit<ListItem, "part"> {
  readonly value: Expression;
}

/** A member of an object. */
export interface Member extends Entry {
  /** Its name, with quotation marks. */
  readonly name: Expression;
}

/** An object with these members in this order. */
export function objectOf(members: readonly Member[], gap: Gap): Expression {
  const items = members.map(({ name, value, ...rest }) => ({
    part: sequence(name, literal(":"), optional(literal(" ")), value),
    ...rest,
  }));
  const comma = sequence(literal(","), gap);
  return sequence(literal("{"), gap, list(items, comma), gap, literal("}"));
}

/** A list of these items, each of them there or not. */
export function arrayOf(items: readonly Entry[], gap: Gap): Expression {
  const parts = items.map(({ value, ...rest }) => ({ part: value, ...rest }));
  const comma = sequence(literal(","), gap);
  return sequence(literal("["), gap, list(parts, comma), gap, literal("]"));
}

/** Exactly this value. */
export function exactly(value: unknown, gap: Gap): Expression {
  if (Array.isArray(value))
    return arrayOf(
      value.map((one) => ({ value: exactly(one, gap), required: true })),
      gap,
    );
  if (typeof value !== "object" || value === null) return literal(JSON.stringify(value));
  return objectOf(
    Object.entries(value).map(([name, one]) => ({
      name: literal(JSON.stringify(name)),
      value: exactly(one, gap),
      required: true,
    })),
    gap,
  );
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Characters that stand in a string as they are. */
const plain: readonly CodePoints[] = [
  [0x20, QUOTE - 1],
  [QUOTE + 1, BACKSLASH - 1],
  [BACKSLASH + 1, LAST_CODE_POINT],
];
const hex = bytes([0x30, 0x39], [0x41, 0x46], [0x61, 0x66]);
const notD = bytes([0x30, 0x39], [0x41, 0x43], [0x45, 0x46], [0x61, 0x63], [0x65, 0x66]);
// Not `\ud800` to `\udfff`, which are halves of characters.
const escapeOfFour = sequence(
  literal("\\u"),
  choice(
    sequence(notD, hex, hex, hex),
    sequence(bytes([0x44, 0x44], [0x64, 0x64]), bytes([0x30, 0x37]), hex, hex),
  ),
);
const escapes = choice(...["\\\\", '\\"', "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"].map(literal));

/** Any character of a string, also written as an escape. */
export const anyCharacter = choice(character(plain), escapes, escapeOfFour);
/** Any character of a string that is written as it is: a text has one spelling then. */
export const plainCharacter = character(plain);

const SHORT: Readonly<Record<number, string>> = {
  8: "\\b",
  9: "\\t",
  10: "\\n",
  12: "\\f",
  13: "\\r",
  [QUOTE]: '\\"',
  [BACKSLASH]: "\\\\",
};

/** A character of these ranges as it is written in a string, in one spelling. */
export function writtenCharacter(ranges: readonly CodePoints[]): Expression {
  const isIn = (point: number): boolean =>
    ranges.some(([from, to]) => point >= from && point <= to);
  const escaped = [...Array(0x20).keys(), QUOTE, BACKSLASH].filter(isIn);
  const direct = ranges.flatMap(([from, to]) =>
    plain.flatMap(([least, most]): readonly CodePoints[] =>
      Math.max(from, least) > Math.min(to, most)
        ? []
        : [[Math.max(from, least), Math.min(to, most)]],
    ),
  );
  return choice(
    character(direct),
    ...escaped.map((point) => literal(SHORT[point] ?? `\\u${point.toString(16).padStart(4, "0")}`)),
  );
}

export const quoted = (content: Expression): Expression =>
  sequence(literal('"'), content, literal('"'));

const digit = bytes([0x30, 0x39]);
const wholeNumber = choice(literal("0"), sequence(bytes([0x31, 0x39]), repeat(digit, 0, 14)));
const number = sequence(
  optional(literal("-")),
  wholeNumber,
  optional(sequence(literal("."), repeat(digit, 1, 9))),
);

/** How deep a value goes that its schema says nothing about. */
const FREE_DEPTH = 4;

/** Any object; it and what is in it go so many levels deep. */
export function anyObject(gap: Gap, levels = FREE_DEPTH): Expression {
  const value = anyValue(gap, levels - 1);
  return objectOf([{ name: anyString, value, required: false, repeated: true }], gap);
}

/** Any value, of so many levels. */
export function anyValue(gap: Gap, levels = FREE_DEPTH): Expression {
  if (levels === 0) return scalar;
  const items = { value: anyValue(gap, levels - 1), required: false, repeated: true };
  return choice(scalar, anyObject(gap, levels), arrayOf([items], gap));
}

const anyString = quoted(repeat(anyCharacter));
const scalar = choice(anyString, number, ...["true", "false", "null"].map(literal));
