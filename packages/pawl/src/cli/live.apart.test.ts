import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { comparisonProgress } from "./bench-observations.js";
import { createColours } from "./colours.js";
import { clip, textColumns } from "./format.js";
import { type Io, warn } from "./io.js";
import { createLive } from "./live.js";
import { recordRun } from "./resumable.js";
import { rwmlProgress } from "./rwml.js";
import { screenOf } from "./screen-testing.js";
import { trainProgress } from "./train-progress.js";
import { worldProgress } from "./wm-progress.js";

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

it("says of a comparison without a terminal how far it is, which runs have ended, and if quiet only what failed", () => {
  const running = new Map([["a/1", { share: 0.5, text: "update 2" }]]);
  const logOf = (quiet: boolean): string => {
    const { io, written } = terminal({ isTTY: false, quiet });
    const progress = comparisonProgress(io);
    progress.onProgress({ done: 0.5, all: 2, doneNow: 0.5, running });
    vi.advanceTimersByTime(31_000);
    progress.onProgress({ done: 1.5, all: 2, doneNow: 1.5, running });
    progress.onEnd("a/0", "done");
    progress.onEnd("b/0", new Error("no memory"));
    progress.end();
    vi.advanceTimersByTime(31_000);
    return written();
  };
  expect(logOf(false)).toBe(
    [
      "0.5 of 2 runs (25.0 %), 0:00 so far, 0:00 left",
      "a/0 done; 1.5 of 2 runs (75.0 %), 0:00 so far, 0:00 left",
      "warning: b/0: no memory\n",
    ].join("\n"),
  );
  expect(logOf(true)).toBe("warning: b/0: no memory\n");
});

it("shows what is trained where, movement inside an update, and time left in every phase", () => {
  const { io, screen } = terminal({ isTTY: true });
  const progress = trainProgress(io, 4, { header: "runs/a · household · tiny" });
  const shown = (): string => {
    vi.advanceTimersByTime(600);
    return screen().join("\n");
  };
  progress.onPhase("warm start");
  progress.onActivity({ what: "the teacher plays", done: 3, total: 9, unit: "episodes" });
  expect(shown()).toMatch(/runs\/a · household · tiny\nwarm start · the teacher plays: 3\/9 epi/);
  progress.onWarmStart({ step: 0, steps: 2, loss: 1, gradNorm: 1 });
  expect(shown()).toMatch(/warm start step 1\/2, loss 1\.000\s.*\d:\d\d left/);
  progress.onActivity({ what: "evaluating", done: 1, total: 2, unit: "episodes" });
  // Where the time does not fit beside it, it has a line of its own.
  expect(shown()).toMatch(/evaluating: 1\/2 episodes\n\d:\d\d so far, \d:\d\d left of this/);
  progress.onPhase("rl");
  progress.onActivity({ what: "learning", done: 1000, total: 3000, unit: "tokens" });
  expect(shown()).toMatch(/rl · learning: 1,000\/3,000 tokens/);
  expect(progress.doing()).toBe("rl · learning: 1,000/3,000 tokens");
  progress.end();
});

it("shows the same of RWML: what it does before it learns, and movement inside an update", () => {
  const { io, screen } = terminal({ isTTY: true });
  const progress = rwmlProgress(io, 4, "runs/b · household · runs/warm");
  const shown = (): string => {
    vi.advanceTimersByTime(600);
    return screen().join("\n");
  };
  progress.onPhase("collect");
  progress.onActivity({ what: "playing", done: 2, total: 8, unit: "episodes" });
  expect(shown()).toMatch(
    /runs\/b · household · runs\/warm\ncollecting triplets · playing: 2\/8 episodes/,
  );
  progress.onPhase("filter");
  progress.onActivity({ what: "learning", done: 1, total: 5, unit: "steps" });
  expect(shown()).toMatch(/filtering triplets · learning: 1\/5 steps\s+0:00 so far/);
  progress.onMetrics({
    ...{ update: -1, "triplets.kept": 3, "triplets.collected": 5 },
    ...{ "heldOut.reward": 0.25, "eval.valid_seen.success": 0.5 },
  });
  progress.onPhase("rwml");
  progress.onActivity({ what: "predicting", done: 0, total: 32, unit: "predictions" });
  expect(progress.doing()).toBe("rwml · predicting: 0/32 predictions");
  progress.onMetrics({ update: 0, "rwml.reward": 0.5, "rwml.exact": 0.4, "rwml.equalGroups": 2 });
  progress.onMetrics({
    ...{ update: 1, "rwml.reward": 1, "rwml.exact": 0.75, "rwml.equalGroups": 2 },
    ...{ "heldOut.reward": 0.75, "train.tokens": 300, "seconds.learn": 2 },
  });
  progress.onActivity({ what: "learning", done: 10, total: 30, unit: "tokens" });
  const text = shown();
  expect(text).toMatch(/rwml update 2\/4 · learning: 10\/30 tokens/);
  expect(text).toMatch(/reward +▅█ +1\.000\npredictions +exact 75\.0 % · 2 groups all equal · 150/);
  expect(text).toMatch(/held out +0\.250 → 0\.750\nvalid_seen +50\.0 %/);
  progress.end();
});

it("shows the same of a world model, and starts to count anew with every training", () => {
  const { io, screen } = terminal({ isTTY: true });
  const progress = worldProgress(io, "world model", "runs/c · data · tiny");
  const shown = (): string => {
    vi.advanceTimersByTime(600);
    return screen().join("\n");
  };
  progress.onPhase("data");
  expect(shown()).toMatch(/runs\/c · data · tiny\nreading the data .*– left of this/);
  progress.onPhase("learn");
  progress.onStep({ step: 0, steps: 4, loss: 2 });
  expect(shown()).toMatch(/world model step 1\/4, loss 2\.0000 .*\d:\d\d left$/m);
  progress.onActivity({ what: "evaluating", done: 5, total: 9, unit: "turns" });
  expect(progress.doing()).toBe("world model step 1/4, loss 2.0000 · evaluating: 5/9 turns");
  progress.onMetrics({ update: 0, "wm.loss": 2, "wm.exactMatch": 0.25 });
  progress.onMetrics({ update: 3, "wm.loss": 1, "wm.exactMatch": 0.5 });
  expect(shown()).toMatch(/loss +█▅ +1\.0000\nexact match +25\.0 % → 50\.0 % of test turns/);
  progress.onPhase("model");
  expect(shown()).toMatch(/opening the model .*– left of this/);
  progress.end();
});

it.each([
  ["train", (io: Io) => trainProgress(io, 4), "rl"],
  ["rwml", (io: Io) => rwmlProgress(io, 4), "rwml"],
  ["wm train", (io: Io) => worldProgress(io), "world model"],
])(
  "%s acknowledges Ctrl-C at once, with what is waited for, above the view",
  async (command, start, phase) => {
    const { io, screen } = terminal({ isTTY: true });
    const progress = start(io);
    progress.onPhase(phase);
    const controller = new AbortController();
    const { signal } = controller;
    const work = recordRun({ command, folder: "runs/a", io, signal }, progress, async () => {
      controller.abort(new Error("stopped"));
      expect(screen().join("")).toContain("stopping as soon as");
      throw new Error("stopped");
    });
    await expect(work).rejects.toThrow("stopped");
    const text = screen().join("\n");
    const joined = text.replace(/\n/g, " ");
    expect(joined).toContain("stopping as soon as what is being computed is done");
    expect(joined).toContain(`(${phase}); Ctrl-C again`);
    expect(text).toContain(`interrupted; pawl ${command} --resume runs/a`);
  },
);
