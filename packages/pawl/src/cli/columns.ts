/** The width of text in a terminal's columns. */
import { stripVTControlCharacters } from "node:util";

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
