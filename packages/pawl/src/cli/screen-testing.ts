/** A model of a terminal's screen for tests: what a person would see after these bytes. */
import { textColumns } from "./format.js";

/** The lines of the screen, those that scrolled out of it first. */
export function screenOf(written: string, { columns = 80, rows = 24 } = {}): readonly string[] {
  const lines: string[][] = [[]];
  let [row, column] = [0, 0];
  /** The first line that is still on the screen. */
  const top = (): number => Math.max(0, lines.length - rows);
  const down = (): void => {
    row++;
    if (row === lines.length) lines.push([]);
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what a terminal reads
  const tokens = written.matchAll(/\u001b\[(\??[\d;]*)([A-Za-z])|[\s\S]/gu);
  for (const [token, parameter, command] of tokens) {
    if (command === "A") row = Math.max(top(), row - Number(parameter || 1));
    else if (command === "J") {
      lines.length = row + 1;
      lines[row]!.length = column;
    } else if (command !== undefined) {
      if (!"hlm".includes(command)) throw new Error(`unknown sequence ${JSON.stringify(token)}`);
    } else if (token === "\r") column = 0;
    else if (token === "\n") {
      down();
      // As the terminal's driver does it.
      column = 0;
    } else {
      const width = textColumns(token);
      if (column + width > columns) {
        down();
        column = 0;
      }
      const line = lines[row]!;
      while (line.length < column) line.push(" ");
      line[column] = token;
      // A wide character covers the next column.
      if (width === 2) line[column + 1] = "";
      column += width;
    }
  }
  return lines.map((line) => line.join("").trimEnd());
}
