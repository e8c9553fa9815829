import { PassThrough, Readable } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { createColours } from "./colours.js";
import type { Io } from "./io.js";
import { sparkline } from "./phase-view.js";
import { trainProgress } from "./train-progress.js";

/** A terminal, or a pipe, that remembers what was written to it. */
function terminal(isTTY: boolean): { readonly io: Io; readonly written: () => string } {
  const stderr = Object.assign(new PassThrough(), { isTTY, columns: 100, rows: 30 });
  const io: Io = {
    stdin: Readable.from([]),
    stdout: new PassThrough(),
    stderr,
    env: {},
    colors: createColours(false),
  };
  return { io, written: () => (stderr.read() as Buffer | null)?.toString() ?? "" };
}

const update = (index: number, reward: number) => ({
  update: index,
  "train.return": reward,
  "train.success": reward / 10,
  "world.lambda": 1 - reward / 10,
  "world.loss": 0.0625,
  "world.clipped": 0.25,
  "world.p": 0.75,
  "policy.kl": 0.0011,
  "train.tokens": 3000,
  "seconds.learn": 2,
});

describe("the live view of training", () => {
  it("shows all its metrics", () => {
    const { io, written } = terminal(true);
    const progress = trainProgress(io, 4);
    progress.onPhase("rl");
    progress.onMetrics({ update: -1, "eval.valid_seen.success": 0.1 });
    progress.onMetrics(update(0, 1));
    progress.onMetrics({ ...update(1, 8), "eval.valid_seen.success": 0.5 });
    progress.end();
    const last = written().split("\u001b[J").at(-1)!;
    expect(last).toMatch(/rl.* update 2\/4 .*so far, \d+:\d\d left/);
    expect(last).toMatch(/reward +▂█ +8\.00/);
    expect(last).toMatch(/train success +80\.0 %/);
    expect(last).toMatch(/valid_seen +10\.0 % → 50\.0 %/);
    expect(last).toContain(
      "λ 0.20 · world loss 0.0625 · clipped 25.0 % · p 0.75 · KL 0.0011 · 1,500 tokens/s",
    );
  });

  it("shows what a resumed run did before, and the time of its own updates", () => {
    vi.useFakeTimers();
    const { io, written } = terminal(true);
    const lines = [{ update: -1, "eval.valid_seen.success": 0.1 }, update(0, 4), update(1, 8)];
    const progress = trainProgress(io, 13, { earlier: () => lines });
    let view = "";
    const shown = (): string => {
      view = written().split("\u001b[J").at(-1) || view;
      return view;
    };
    progress.onPhase("rl");
    vi.advanceTimersByTime(1000);
    expect(shown()).toMatch(/rl.* update 2\/13 .*so far, – left/);
    expect(shown()).toMatch(/reward +▅█ +8\.00/);
    // The first update takes 20 seconds, the next 2: ten updates more, of which one second is over.
    vi.advanceTimersByTime(19_000);
    progress.onMetrics(update(2, 4));
    vi.advanceTimersByTime(1000);
    expect(shown()).toMatch(/update 3\/13 .*0:21 so far, 3:19 left/);
    vi.advanceTimersByTime(1000);
    progress.onMetrics({ ...update(3, 4), "eval.valid_seen.success": 0.5 });
    vi.advanceTimersByTime(1000);
    expect(shown()).toMatch(/update 4\/13 .*0:23 so far, 0:17 left/);
    expect(shown()).toMatch(/valid_seen +10\.0 % → 50\.0 %/);
    progress.end();
    vi.useRealTimers();
  });

  it("writes line by line to a pipe, and counts an update of broken episodes", () => {
    const { io, written } = terminal(false);
    const progress = trainProgress(io, 2);
    const evaluated = { "eval.valid_seen.success": 0.1, "eval.valid_unseen.success": 0.5 };
    const episodes = { "eval.valid_seen.episodes": 128, "eval.valid_unseen.episodes": 128 };
    progress.onMetrics({ update: -1, ...evaluated });
    progress.onMetrics({ update: 0, "train.broken": 6 });
    progress.onMetrics({ ...update(1, 5), ...evaluated, ...episodes });
    progress.end();
    const lines = written().split("\n");
    const [start, broken, whole, last] = lines;
    expect(start).toMatch(/ {2}start · valid_seen 10\.0 % · valid_unseen 50\.0 %$/);
    expect(broken).toMatch(/update 1\/2 · reward – · success –/);
    expect(whole).toMatch(/update 2\/2 · reward 5\.00 · success 50\.0 % · λ 0\.50 · 0:00 left$/);
    expect(last).toMatch(/valid_seen 10\.0 % \(6 – 17\) · valid_unseen 50\.0 % \(41 – 59\)$/);
    for (const line of lines) expect(line.length).toBeLessThan(80);
  });
});

describe("sparkline", () => {
  it("goes from 0 to the maximum, and averages long series", () => {
    expect(sparkline([0, 5, 10])).toBe("▁▅█");
    expect(sparkline([0, 0])).toBe("▁▁");
    expect(sparkline([-1, 1])).toBe("▁█");
    expect(sparkline(Array.from({ length: 480 }, (_, i) => i))).toHaveLength(48);
  });
});
