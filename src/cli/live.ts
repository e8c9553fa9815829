/** A few lines at the bottom of the terminal that are redrawn in place. */
import { stripVTControlCharacters } from "node:util";
import type { Io } from "./io.js";

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const ERASE_BELOW = "\u001b[J";
const REDRAW_MS = 80;

/** Lines that are redrawn in place. */
export interface Live {
  /** Redraws, at most a dozen times a second. */
  draw(lines: () => readonly string[]): void;
  /** Draws a last time and restores the terminal. */
  end(lines: readonly string[]): void;
}

/** Draws to the terminal; without one, only the last lines are written at the end. */
export function createLive(io: Io): Live {
  const { stderr } = io;
  if (!stderr.isTTY) {
    return { draw: () => undefined, end: (lines) => write(lines) };
  }
  let height = 0;
  let drawnAt = 0;
  // Restore the cursor however the process ends.
  const restore = (): void => void stderr.write(SHOW_CURSOR);
  process.on("exit", restore);
  stderr.write(HIDE_CURSOR);
  return {
    draw(lines) {
      const now = performance.now();
      if (now - drawnAt < REDRAW_MS) return;
      drawnAt = now;
      redraw(lines());
    },
    end(lines) {
      redraw(lines);
      restore();
      process.off("exit", restore);
    },
  };

  function redraw(lines: readonly string[]): void {
    const up = height === 0 ? "" : `\u001b[${height}A`;
    const width = (stderr.columns ?? 80) - 1;
    height = lines.length;
    stderr.write(`${up}\r${ERASE_BELOW}${lines.map((line) => `${clip(line, width)}\n`).join("")}`);
  }

  function write(lines: readonly string[]): void {
    for (const line of lines) stderr.write(`${line}\n`);
  }
}

/** Cuts a line to the terminal's width: a wrapped line would break redrawing in place. */
function clip(line: string, width: number): string {
  const plain = stripVTControlCharacters(line);
  return plain.length <= width ? line : `${plain.slice(0, width - 1)}…`;
}
