/**
 * A comparison on PyTorch servers that it starts itself.
 *
 * Runs if there is a Python with PyTorch (PAWL_PYTHON, otherwise python3); if not, it says why.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readResult, trainingFolder } from "../src/bench/result-file.js";
import { runCli } from "../src/cli/testing.js";
import { findTorchPython } from "../src/cli/torch-server.js";
import { openRun } from "../src/runs/run-folder.js";

const python = await findTorchPython(process.env).catch((error: Error) => error.message);
const absent = typeof python === "string";
if (absent) console.warn(`comparisons on PyTorch servers are not tested: ${python}`);

const out = mkdtempSync(join(tmpdir(), "pawl-torch-comparison-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));

it.skipIf(absent)("runs on a server that is started for it and ends with it", async () => {
  if (typeof python === "string") return;
  const small = {
    ...{ "model.start": "tiny", updates: 1, groups: 1, "group-size": 2, "step-limit": 3 },
    ...{ "warm-start.episodes": 4, "evaluation.every": 0 },
  };
  const args = Object.entries(small).flatMap(([name, value]) => [`--train.${name}`, `${value}`]);
  const servers = ["--servers", "1", "--threads", "1", "--server.batch-tokens", "2048"];
  const what = ["--arms", "plain", "--seeds", "0", "--eval-tasks", "1", ...servers];
  const environment = { ...process.env, PAWL_PYTHON: python.command } as Record<string, string>;
  const { code, stdout, stderr } = await runCli(
    ["bench", "observations", ...what, ...args, "--out", out],
    { env: environment },
  );
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(/^engine servers: up to 1 \(PyTorch .*default\/grpo\/0 done/s),
  });
  expect(stdout).toContain("results.md");

  const job = join(out, "default", "grpo", "seed-0");
  expect(readResult(job)!.splits.valid_seen!.episodes).toBe(1);
  const { config } = openRun(trainingFolder(job), () => undefined).manifest;
  const { address } = (config as { engine: { address: string } }).engine;
  expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  await expect(fetch(address)).rejects.toThrow();
  // Its only output, and the only checkpoints.
  expect(readdirSync(join(out, "servers"))).toEqual(["1.log"]);
  expect(readFileSync(join(out, "servers", "1.log"), "utf8")).toMatch(/1 thread\b.*\n.*a run came/);
  expect(readdirSync(join(out, "checkpoints")).sort()).toEqual(["run", "uploads"]);
});
