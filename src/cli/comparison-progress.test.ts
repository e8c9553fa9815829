import { PassThrough, Readable } from "node:stream";
import { expect, it } from "vitest";
import { createColours } from "./colours.js";
import { comparisonProgress } from "./comparison-progress.js";
import type { Io } from "./io.js";

/** The lines that two runs leave in a log, which report every hundredth of their work. */
function logOf(options: Partial<Io>): readonly string[] {
  const stderr = new PassThrough();
  const io: Io = {
    ...{ stdin: Readable.from([]), stdout: new PassThrough(), stderr, env: {} },
    colors: createColours(false),
    ...options,
  };
  const view = comparisonProgress(io);
  const running = new Map<string, { share: number; text: string }>();
  const tell = (done: number) => view.onProgress({ done, all: 2, doneNow: done, running });
  for (let hundredths = 0; hundredths <= 100; hundredths++) {
    for (const id of ["a/0", "b/0"]) running.set(id, { share: hundredths / 100, text: "update" });
    tell(hundredths / 50);
  }
  for (const id of ["a/0", "b/0"]) {
    running.delete(id);
    tell(2);
    view.onEnd(id, "done");
  }
  view.onEnd("c/0", new Error("no memory"));
  view.end();
  return ((stderr.read() as Buffer | null)?.toString() ?? "").trimEnd().split("\n");
}

it("says in a log how far a comparison is, twenty times, and which runs have ended", () => {
  const lines = logOf({});
  expect(lines).toHaveLength(23);
  expect(lines[0]).toMatch(/^0\.1 of 2 runs \(5\.0 %\), 0:00 so far, 0:00 left$/);
  expect(lines[9]).toMatch(/^1\.0 of 2 runs \(50\.0 %\), /);
  expect(lines[20]).toMatch(/^a\/0 done; 2\.0 of 2 runs \(100\.0 %\), /);
  expect(lines[22]).toBe("warning: c/0: no memory");
});

it("is silent about progress if asked, but not about failures", () => {
  expect(logOf({ quiet: true })).toEqual(["warning: c/0: no memory"]);
});
