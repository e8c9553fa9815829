import { plainText } from "@pawl/core/plain-text.js";

/** The text with HTML's special characters escaped, and control characters made visible. */
export function escapeHtml(text: string): string {
  return plainText(text).replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Axes: round tick values, and the coordinate of a number. */

/** A range of numbers. */
export type Range = readonly [low: number, high: number];

/** The coordinate of a number in the domain; a domain of one number maps to the middle. */
export function linearScale([low, high]: Range, [from, to]: Range): (value: number) => number {
  return (value) =>
    high === low ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from);
}

/** About `count` round numbers, from at or below the minimum to at or above the maximum. */
export function ticks([low, high]: Range, count: number): readonly number[] {
  const [bottom, top] = high > low ? [low, high] : widen(low);
  const step = roundStep((top - bottom) / Math.max(1, count));
  const first = Math.floor(bottom / step + 1e-9);
  const last = Math.ceil(top / step - 1e-9);
  // Multiples of the increment, not sums, so that 0.1 · 3 is written 0.3.
  const digits = Math.max(0, -Math.floor(Math.log10(step)) + 1);
  return Array.from({ length: last - first + 1 }, (_, i) =>
    digits > 20 ? (first + i) * step : Number(((first + i) * step).toFixed(digits)),
  );
}

/** The integer ticks inside the range, for counts. */
export function wholeTicks(range: Range, count: number): readonly number[] {
  const marks = ticks(range, Math.min(count, Math.max(1, range[1] - range[0])));
  return marks.filter((m) => Number.isInteger(m) && m >= range[0] && m <= range[1]);
}

function widen(value: number): Range {
  const reach = value === 0 ? 1 : Math.abs(value) / 2;
  return [value - reach, value + reach];
}

/** The smallest of 1, 2, 5 times a power of ten that is no smaller than this. */
function roundStep(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast));
  const factor = [1, 2, 5].find((f) => f * power >= atLeast * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** A number for an axis or a table: at most four significant digits. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(1).replace("e+", "e");
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(4))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(4))}k`;
  return String(Number(value.toPrecision(4)));
}

/** A fraction as a percentage. */
export function shortPercent(share: number): string {
  return Number.isFinite(share) ? `${Number((100 * share).toFixed(1))} %` : "–";
}
