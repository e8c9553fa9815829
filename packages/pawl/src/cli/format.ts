/** Numbers and tables in readable form. */
import { stripVTControlCharacters } from "node:util";

/** Text of help, wrapped at the terminal's width. */

/** Where the width is not known, such as in a pipe. */
const USUAL_WIDTH = 100;
/** Longer lines are hard to read, and shorter ones leave no room beside the flags. */
const WIDTHS = { least: 50, most: 120 };

/** The columns to write help in. */
export function widthOf(columns: number | undefined): number {
  return Math.min(WIDTHS.most, Math.max(WIDTHS.least, columns ?? USUAL_WIDTH));
}

/** A text in lines of at most this width, broken between words. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Paragraphs, wrapped anew; indented lines are columns and stay as they are. */
export function wrapParagraphs(text: string, width: number): string[] {
  const lines: string[] = [];
  let paragraph: string[] = [];
  const flush = (): void => {
    if (paragraph.length > 0) lines.push(...wrap(paragraph.join(" "), width));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    if (line !== "" && !line.startsWith("  ")) paragraph.push(line);
    else {
      flush();
      lines.push(line);
    }
  }
  flush();
  return lines;
}

/** East Asian wide characters and emoji take two columns. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Combining marks, joiners and variation selectors take none. */
const NARROW = /[\p{Mn}\p{Me}\p{Cf}]/u;

const columnsOf = (character: string): number =>
  NARROW.test(character) ? 0 : WIDE.test(character) ? 2 : 1;

/** The columns that a text takes, colours not counted. */
export function textColumns(text: string): number {
  let columns = 0;
  for (const character of stripVTControlCharacters(text)) columns += columnsOf(character);
  return columns;
}

/** Cuts a line to so many columns; a cut line loses its colours. */
export function clip(line: string, width: number): string {
  if (textColumns(line) <= width) return line;
  let kept = "";
  let columns = 0;
  for (const character of stripVTControlCharacters(line)) {
    columns += columnsOf(character);
    if (columns > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** `82.4 %`; a dash if there is nothing to divide by. */
export function percent(share: number): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–";
}

/** `12,345` or `3.42`; a dash for not-a-number. */
export function number(value: number, digits = 0): string {
  if (!Number.isFinite(value)) return "–";
  return value.toLocaleString("en-GB", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** `0:07`, `12:30`, `1:02:03`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, i) => (i === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}

/**
 * Rows in aligned columns; columns after the first are right-aligned if all their cells are
 * numbers.
 */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [header, ...rows];
  const widths = header.map((_, column) =>
    Math.max(...all.map((row) => textColumns(row[column] ?? ""))),
  );
  const numeric = header.map(
    (_, column) => column > 0 && rows.every((row) => /^[\d.,–\s%-]*$/.test(row[column] ?? "")),
  );
  const padded = (cell: string, width: number, right: boolean | undefined): string => {
    const room = " ".repeat(Math.max(0, width - textColumns(cell)));
    return right ? `${room}${cell}` : `${cell}${room}`;
  };
  return all.map((row) =>
    widths
      .map((width, column) => padded(row[column] ?? "", width, numeric[column]))
      .join("  ")
      .trimEnd(),
  );
}
