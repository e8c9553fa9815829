/**
 * Around all tests: a temporary folder of their own, so that what they leave behind is removed with it.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let folder: string | undefined;

/** Vitest calls this once, before it starts processes for the tests. */
export function setup(): void {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "pawl-tests-")));
  // The first is for Unix, the others are for Windows.
  for (const name of ["TMPDIR", "TEMP", "TMP"]) process.env[name] = folder;
}

/** Vitest calls this once, after the last test. */
export function teardown(): void {
  // A process that a test has ended may still be writing.
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
