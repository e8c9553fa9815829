import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createColours } from "./colours.js";
import { clip, textColumns } from "./columns.js";
import { type Io, warn } from "./io.js";
import { createLive } from "./live.js";
import { recordRun } from "./resumable.js";
import { screenOf } from "./screen-testing.js";
import { trainProgress } from "./train-progress.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

const size = { columns: 60, rows: 8 };

function terminal(options: { isTTY: boolean; quiet?: boolean }) {
  const stderr = Object.assign(new PassThrough(), { isTTY: options.isTTY, ...size });
  let written = "";
  stderr.on("data", (chunk: Buffer) => {
    written += chunk.toString();
  });
  const io: Io = {
    ...{ stdin: Readable.from([]), stdout: new PassThrough(), stderr, env: {} },
    colors: createColours(false),
    ...(options.quiet === true && { quiet: true }),
  };
  const screen = (): readonly string[] => {
    stderr.read();
    return screenOf(written, size);
  };
  const all = (): string => {
    stderr.read();
    return written;
  };
  return { io, screen, written: all };
}

it("redraws in place, and keeps warnings above", () => {
  const { io, screen } = terminal({ isTTY: true });
  const live = createLive(io);
  let count = 0;
  live.draw(() => [`first ${count}`, `second ${count}`]);
  count = 1;
  warn(io, "something happened");
  count = 2;
  vi.advanceTimersByTime(600);
  warn(io, "again");
  live.end(["the end"]);
  warn(io, "afterwards");
  expect(screen()).toEqual([
    "warning: something happened",
    "warning: again",
    "the end",
    "warning: afterwards",
    "",
  ]);
});

it("moves by itself while nothing is reported", () => {
  const { io, screen } = terminal({ isTTY: true });
  const live = createLive(io);
  let seconds = 0;
  live.draw(() => [`${seconds} s`]);
  seconds = 5;
  vi.advanceTimersByTime(600);
  expect(screen()).toEqual(["5 s", ""]);
  live.end(["done"]);
});

it("is not broken by wide characters, long lines, or more lines than the terminal has", () => {
  const { io, screen } = terminal({ isTTY: true });
  const live = createLive(io);
  const wide = "橡木".repeat(40);
  const many = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  live.draw(() => [wide, "🙂".repeat(50), ...many]);
  vi.advanceTimersByTime(600);
  live.end([wide, "x".repeat(100), "last"]);
  expect(screen()).toEqual([`${"橡木".repeat(14)}橡…`, `${"x".repeat(58)}…`, "last", ""]);
});

it("counts columns as terminals do", () => {
  expect([
    textColumns("abc"),
    textColumns("橡木"),
    textColumns("e\u0301"),
    textColumns("🙂"),
  ]).toEqual([3, 4, 1, 2]);
  expect(clip("橡木橡木", 5)).toBe("橡木…");
  expect(clip("\u001b[31mred\u001b[39m", 3)).toBe("\u001b[31mred\u001b[39m");
});

it("writes a line at regular times without a terminal, and nothing if it is to be quiet", () => {
  const pipe = terminal({ isTTY: false });
  const live = createLive(pipe.io, () => "still here");
  vi.advanceTimersByTime(61_000);
  live.end(["the end"]);
  expect(pipe.written()).toBe("still here\nstill here\nthe end\n");
  for (const isTTY of [true, false]) {
    const quiet = terminal({ isTTY, quiet: true });
    const progress = trainProgress(quiet.io, 3);
    progress.onPhase("rl");
    progress.onMetrics({ update: 0, "train.return": 1 });
    vi.advanceTimersByTime(61_000);
    progress.end();
    warn(quiet.io, "a warning stays");
    expect(quiet.written()).toBe("warning: a warning stays\n");
  }
});

it("shows what is trained where, movement inside an update, and time left in every phase", () => {
  const { io, screen } = terminal({ isTTY: true });
  const progress = trainProgress(io, 4, "runs/a · household · tiny");
  const shown = (): string => {
    vi.advanceTimersByTime(600);
    return screen().join("\n");
  };
  progress.onPhase("warm start");
  progress.onActivity({ what: "the teacher plays", done: 3, total: 9, unit: "episodes" });
  expect(shown()).toMatch(/runs\/a · household · tiny\nwarm start · the teacher plays: 3\/9 epi/);
  progress.onWarmStart({ step: 0, steps: 2, loss: 1, gradNorm: 1 });
  expect(shown()).toMatch(/warm start step 1\/2, loss 1\.000 .*\d:\d\d left/);
  progress.onActivity({ what: "evaluating", done: 1, total: 2, unit: "episodes" });
  expect(shown()).toMatch(/evaluating: 1\/2 episodes/);
  progress.onPhase("rl");
  progress.onActivity({ what: "learning", done: 1000, total: 3000, unit: "tokens" });
  expect(shown()).toMatch(/rl · learning: 1,000\/3,000 tokens/);
  expect(progress.doing()).toBe("rl · learning: 1,000/3,000 tokens");
  progress.end();
});

it("acknowledges Ctrl-C at once, with what is waited for, above the view", async () => {
  const { io, screen } = terminal({ isTTY: true });
  const progress = trainProgress(io, 4);
  progress.onPhase("rl");
  const controller = new AbortController();
  const { signal } = controller;
  const work = recordRun({ command: "train", folder: "runs/a", io, signal }, progress, async () => {
    controller.abort(new Error("stopped"));
    expect(screen().join("")).toContain("stopping as soon as");
    throw new Error("stopped");
  });
  await expect(work).rejects.toThrow("stopped");
  const text = screen().join("\n");
  expect(text).toMatch(/stopping as soon as what is being computed is done\s\(rl\); Ctrl-C again/);
  expect(text).toMatch(/interrupted; pawl train --resume runs\/a/);
});
