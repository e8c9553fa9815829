/**
 * A coding agent from npm, as examples/pi-agent.ts trains it: what it was told it received is what is
 * recorded. PAWL_PI names a folder in which `@mariozechner/pi-coding-agent` is installed.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-pi-"));
afterAll(() => rmSync(folder, { recursive: true }));
const { PAWL_PI: pi, PAWL_SMOLLM2: model } = process.env;

it.skipIf(pi === undefined)(
  "pi is trained unchanged, and every token is accounted for (skipped without PAWL_PI)",
  () => {
    const run = join(folder, "run");
    const start =
      model === undefined
        ? ["--model.max-context", "8192"]
        : ["--model.start", model, "--engine.lora-rank", "8"];
    const { status, stderr } = spawnSync(
      process.execPath,
      [
        ...["dist/lib/main.js", "train", "--agent", "examples/pi-agent.ts", ...start],
        ...["--max-tokens", "32", "--out", run],
        ...["--updates", "2", "--groups", "1", "--group-size", "2"],
        ...["--evaluation.every", "0", "--gradients.every", "0"],
      ],
      { encoding: "utf8", env: { ...process.env, PI: pi } },
    );
    expect(status, stderr).toBe(0);
    const episodes = [...openRun(run, () => undefined).episodes()];
    expect(episodes).toHaveLength(4);
    for (const { steps, result, untrained = {}, why, given, stop } of episodes) {
      expect(stop).not.toBe("broken");
      expect([typeof why, given]).toEqual([
        "string",
        expect.objectContaining({ id: expect.any(String) }),
      ]);
      const trained = steps.flatMap(({ sequence }) =>
        sequence!.spans.map(({ kind, start, end }) => (kind === "action" ? end - start : 0)),
      );
      const left = Object.values(untrained).reduce((sum, tokens) => sum + tokens, 0);
      const counted = trained.reduce((sum, tokens) => sum + tokens, 0) + left;
      expect(counted).toBe((result as { readonly tokens: number }).tokens);
      expect(counted).toBeGreaterThan(0);
    }
    const shown = spawnSync(process.execPath, ["dist/lib/main.js", "show", run], {
      encoding: "utf8",
    });
    expect(shown.stdout).toMatch(/tokens +\d+ sampled in \d+ sequences, 100.0 % to be trained/);
  },
  // A real model reads its long prompt at every call.
  1_800_000,
);
