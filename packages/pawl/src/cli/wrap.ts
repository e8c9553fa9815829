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
