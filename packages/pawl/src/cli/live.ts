/**
 * A few lines at the bottom of the terminal that are redrawn in place. What else is written goes
 * above them and stays.
 */
import { colouredText } from "./colours.js";
import { clip } from "./format.js";
import { type Io, liveViews, note } from "./io.js";

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const ERASE_BELOW = "\u001b[J";
const REDRAW_MS = 80;
/** Clocks move even if nothing happens. */
const TICK_MS = 500;
/** Without a terminal, a line comes at least this often. */
const PLAIN_LINE_MS = 30_000;

/** Lines that are redrawn in place. */
export interface Live {
  /** Redraws, at most a dozen times a second. */
  draw(lines: () => readonly string[]): void;
  /** Draws a last time and restores the terminal. */
  end(lines: readonly string[]): void;
}

/**
 * Draws to the terminal. Without one, `plain` is written at regular times, and the last lines at
 * the end.
 */
export function createLive(io: Io, plain?: () => string): Live {
  const { stderr } = io;
  if (io.quiet) return { draw: () => undefined, end: () => undefined };
  if (!stderr.isTTY) return plainLines(io, plain);
  let height = 0;
  let drawnAt = 0;
  let latest: (() => readonly string[]) | undefined;
  // Restore the cursor however the process ends.
  const restore = (): void => void stderr.write(SHOW_CURSOR);
  process.on("exit", restore);
  stderr.write(HIDE_CURSOR);
  liveViews.set(stderr, (text) => {
    stderr.write(`${upAndErase()}${text}`);
    height = 0;
    if (latest !== undefined) redraw(latest());
  });
  const ticking = setInterval(() => {
    if (latest !== undefined) redraw(latest());
  }, TICK_MS);
  ticking.unref();
  return {
    draw(lines) {
      latest = lines;
      const now = performance.now();
      if (now - drawnAt < REDRAW_MS) return;
      redraw(lines());
    },
    end(lines) {
      clearInterval(ticking);
      liveViews.delete(stderr);
      redraw(lines);
      restore();
      process.off("exit", restore);
    },
  };

  function upAndErase(): string {
    return `${height === 0 ? "" : `\u001b[${height}A`}\r${ERASE_BELOW}`;
  }

  function redraw(lines: readonly string[]): void {
    drawnAt = performance.now();
    const width = (stderr.columns || 80) - 1;
    // More lines than the terminal has would scroll out of reach. One that has no size says 0.
    const shown = lines.slice(0, (stderr.rows || 24) - 1);
    // A line break in a foreign name would break redrawing, too.
    const text = shown
      .map((line) => `${clip(colouredText(line).replaceAll("\n", " "), width)}\n`)
      .join("");
    stderr.write(`${upAndErase()}${text}`);
    height = shown.length;
  }
}

function plainLines(io: Io, plain: (() => string) | undefined): Live {
  const ticking = setInterval(() => {
    if (plain !== undefined) note(io, plain());
  }, PLAIN_LINE_MS);
  ticking.unref();
  return {
    draw: () => undefined,
    end(lines) {
      clearInterval(ticking);
      for (const line of lines) note(io, line);
    },
  };
}
