import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { afterAll, expect, it } from "vitest";
import { createColours } from "./colours.js";
import type { Io } from "./io.js";
import { recordRun } from "./resumable.js";

const begun = mkdtempSync(join(tmpdir(), "pawl-resumable-"));
writeFileSync(join(begun, "manifest.json"), "{}");
afterAll(() => rmSync(begun, { recursive: true, force: true }));

/** The output of a command whose work fails like this. */
async function said(folder: string, error: Error, aborted = false): Promise<string> {
  const written: string[] = [];
  const stderr = { write: (text: string) => written.push(text) };
  const io = { stderr, colors: createColours(false) } as unknown as Io;
  const signal = aborted ? AbortSignal.abort() : new AbortController().signal;
  const work = recordRun({ command: "train", folder, io, signal }, { end: () => undefined }, () =>
    Promise.reject(error),
  );
  await expect(work).rejects.toBe(error);
  return written.join("");
}

it("says how to resume a run that was interrupted, or whose engine failed", async () => {
  const goesOn = `pawl train --resume ${begun} resumes it`;
  expect(await said(begun, new Error("stopped"), true)).toContain(`interrupted; ${goesOn}`);
  expect(await said(begun, new EngineError("gone"))).toContain(`the engine failed; when it works`);
  expect(await said(begun, new EngineError("gone"))).toContain(goesOn);
  expect(await said(join(begun, "none"), new EngineError("gone"))).toBe("");
  expect(await said(begun, new Error("a bug"))).toBe("");
});
