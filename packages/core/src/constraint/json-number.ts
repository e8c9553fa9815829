/** Numbers of JSON between bounds and in steps, digit by digit. */
import { ConstraintError, combined, explored } from "./automaton.js";
import {
  type Automaton,
  accepted,
  choice,
  type Expression,
  literal,
  sequence,
} from "./expression.js";

/** What a schema says about a number. */
export interface NumberRule {
  readonly whole: boolean;
  readonly least?: Bound | undefined;
  readonly most?: Bound | undefined;
  readonly multipleOf?: number | undefined;
}

/** A bound, which is a value itself or not. */
export interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

/** Digits before the point and after it, at most: doubles tell such numbers apart. */
const MOST_DIGITS = 15;
const MOST_DECIMALS = 9;
/** Larger steps have too many remainders. */
const LARGEST_STEP = 10_000;

/** The numbers of a rule, without exponents; undefined if there is none. */
export function numberOf(rule: NumberRule): Expression | undefined {
  const { least, most } = rule;
  const minus = (bound: Bound | undefined): Bound | undefined =>
    bound && { ...bound, value: -bound.value };
  const signs = [
    { sign: "", above: least, below: most },
    { sign: "-", above: minus(most), below: minus(least) },
  ];
  const options = signs.flatMap(({ sign, above, below }) => {
    const sized = magnitudes({ rule, above, below });
    if (sized === undefined) return [];
    const one = sign === "" ? sized : combined(sized, zero, "first only");
    return one === undefined ? [] : [sequence(literal(sign), accepted(one))];
  });
  return options.length === 0 ? undefined : choice(...options);
}

interface Decimal {
  readonly whole: string;
  readonly decimals: string;
}

function decimalOf(value: number): Decimal {
  const [digits, exponent] = Math.abs(value).toExponential().split("e") as [string, string];
  const [first, rest = ""] = digits.split(".") as [string, string?];
  const all = first + rest;
  const point = 1 + Number(exponent);
  if (point <= 0) return { whole: "0", decimals: all === "0" ? "" : "0".repeat(-point) + all };
  return { whole: all.slice(0, point).padEnd(point, "0"), decimals: all.slice(point) };
}

/** How digits compare to those of a bound: less, equal so far, greater. */
type Order = -1 | 0 | 1;

/** What is known of a number from its digits so far. */
interface Digits {
  readonly place: "start" | "zero" | "whole" | "point" | "decimals";
  /** Digits before the point; after it, how many decimals there are. */
  readonly count: number;
  /** How many decimals there may be. */
  readonly room: number;
  readonly above: Order;
  readonly below: Order;
  readonly rest: number;
}

/** Numbers without a sign. */
function magnitudes({
  rule: { whole, multipleOf },
  above,
  below,
}: {
  readonly rule: NumberRule;
  readonly above: Bound | undefined;
  readonly below: Bound | undefined;
}): Automaton | undefined {
  if (below !== undefined && below.value < 0) return undefined;
  // Every magnitude is above a negative bound.
  const low = above === undefined || above.value < 0 ? undefined : decimalOf(above.value);
  const high = below && decimalOf(below.value);
  const step = multipleOf === undefined ? undefined : stepOf(multipleOf);
  const digits = Math.max(
    high?.whole.length ?? MOST_DIGITS,
    high === undefined ? (low?.whole.length ?? 0) : 0,
  );
  const decimals = whole ? 0 : (step?.decimals ?? MOST_DECIMALS);
  const compared = (order: Order, digit: number, other: string | undefined): Order =>
    order !== 0 ? order : (Math.sign(digit - Number(other ?? "0")) as Order);
  const settled = (order: Order, count: number, bound: Decimal | undefined): Order =>
    bound === undefined ? 0 : ((Math.sign(count - bound.whole.length) || order) as Order);
  const start: Digits = { place: "start", count: 0, room: 0, above: 0, below: 0, rest: 0 };
  const stepped = (state: Digits, byte: number): Digits | undefined => {
    const { place, count, room } = state;
    if (byte === 0x2e) {
      const left = Math.min(decimals, Math.max(0, MOST_DIGITS - count));
      if ((place !== "whole" && place !== "zero") || left === 0) return undefined;
      return {
        ...{ place: "point", count: 0, room: left, rest: state.rest },
        above: settled(state.above, count, low),
        below: settled(state.below, count, high),
      };
    }
    // No digit follows a leading zero.
    if (place === "zero" || byte < 0x30 || byte > 0x39) return undefined;
    const digit = byte - 0x30;
    const isDecimal = place === "point" || place === "decimals";
    if (isDecimal ? count >= room : count >= digits) return undefined;
    const at = (bound: Decimal | undefined): string | undefined =>
      (isDecimal ? bound?.decimals : bound?.whole)?.[count];
    const begun = place === "start" && digit === 0 ? "zero" : "whole";
    const order = (which: "above" | "below", bound: Decimal | undefined): Order =>
      bound === undefined ? 0 : compared(state[which], digit, at(bound));
    return {
      place: isDecimal ? "decimals" : begun,
      count: count + 1,
      room,
      above: order("above", low),
      below: order("below", high),
      rest: step === undefined ? 0 : (state.rest * 10 + digit) % step.size,
    };
  };
  const isEnd = (state: Digits): boolean => {
    const { place, count } = state;
    if (place === "start" || place === "point") return false;
    const isDecimal = place === "decimals";
    const final = (which: "above" | "below", bound: Decimal | undefined): Order => {
      const order = isDecimal ? state[which] : settled(state[which], count, bound);
      const left = isDecimal ? bound?.decimals.slice(count) : bound?.decimals;
      return order === 0 && /[1-9]/.test(left ?? "") ? -1 : order;
    };
    const fits = (bound: Bound, order: Order, side: Order): boolean =>
      order === side || (order === 0 && !bound.exclusive);
    if (low !== undefined && !fits(above!, final("above", low), 1)) return false;
    if (high !== undefined && !fits(below!, final("below", high), -1)) return false;
    if (step === undefined) return true;
    const missing = step.decimals - (isDecimal ? count : 0);
    return (state.rest * 10 ** missing) % step.size === 0;
  };
  return explored<Digits>(start, stepped, isEnd, (byte) =>
    byte === 0x2e || (byte >= 0x30 && byte <= 0x39) ? byte : -1,
  );
}

function stepOf(multipleOf: number): { readonly size: number; readonly decimals: number } {
  const { whole, decimals } = decimalOf(multipleOf);
  const size = Number(whole + decimals);
  if (!(size >= 1 && size <= LARGEST_STEP) || decimals.length > MOST_DECIMALS)
    throw new ConstraintError(
      `multipleOf ${multipleOf} cannot be kept to; expected at most ${LARGEST_STEP} in its last digit`,
    );
  return { size, decimals: decimals.length };
}

/** Zero has no sign. */
const zero = explored<number>(
  0,
  (state, byte) => {
    if (state === 0) return byte === 0x30 ? 1 : undefined;
    if (state === 1) return byte === 0x2e ? 2 : undefined;
    return byte === 0x30 ? 3 : undefined;
  },
  (state) => state === 1 || state === 3,
)!;
