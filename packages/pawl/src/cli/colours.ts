/** Colours in the terminal: ours, and nobody else's. */
import { randomInt } from "node:crypto";
import { plainText } from "@pawl/core/plain-text.js";

const ESCAPE = "\u001b";

/**
 * Our own codes carry numbers that nobody knows beforehand, so that no text of others contains one.
 * They are removed when the text is written.
 */
const MARK = [0, 1, 2].map(() => randomInt(1000, 10_000)).join(";");
const OWN_CODE = new RegExp(`${ESCAPE}\\[${MARK};(\\d+)m`);

/** Functions that colour a text, or leave it unchanged if colours are off. */
export type Colours = ReturnType<typeof createColours>;

/** Colours, switched on or off. */
export function createColours(isOn: boolean) {
  const code = (number: number): string => `${ESCAPE}[${MARK};${number}m`;
  const paint = (open: number, close: number) => (text: string) =>
    isOn ? `${code(open)}${text}${code(close)}` : text;
  return {
    isOn,
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
  };
}

/** A text as the terminal gets it: our colours, and control characters of others made visible. */
export function colouredText(text: string): string {
  return text
    .split(OWN_CODE)
    .map((part, i) => (i % 2 === 1 ? `${ESCAPE}[${part}m` : plainText(part)))
    .join("");
}
