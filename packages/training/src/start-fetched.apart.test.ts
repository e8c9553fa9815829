/** Runs that start from a model that is not a folder. */
import "@pawl/pawl/cli/all-worlds.js";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { readGgufModel, writeGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { tinyModel, writeGguf } from "@pawl/models/gguf/gguf-testing.js";
import { COMMIT, startHub } from "@pawl/models/hub/hub-testing.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { afterAll, beforeAll, expect, it, vi } from "vitest";

const parent = mkdtempSync(join(tmpdir(), "pawl-start-"));
const gguf = join(parent, "tiny.gguf");
beforeAll(() => {
  const { metadata, tensors } = tinyModel();
  metadata["llama.context_length"] = { u32: 2048 };
  writeGguf(gguf, metadata, tensors);
  vi.stubEnv("XDG_CACHE_HOME", join(parent, "cache"));
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(parent, { recursive: true });
});

const train = (start: string, out: string) =>
  runCli([
    ...["train", "--model.start", start, "--out", out, "--updates", "0", "--step-limit", "1"],
    ...["--warm-start.episodes", "0", "--evaluation.tasks", "1", "--max-tokens", "2"],
    ...["--model.max-context", "2048"],
  ]);

it("a run from a GGUF file keeps its own copy and records the file", async () => {
  const out = join(parent, "run");
  const { code, stderr } = await train(gguf, out);
  expect(code, stderr).toBe(0);
  expect(readManifest(out).start).toEqual({
    model: gguf,
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(readManifest(out).config).toMatchObject({ model: { start: gguf } });
  // The copy does not need the cache.
  rmSync(join(parent, "cache"), { recursive: true });
  expect(existsSync(join(out, "reference", "model.safetensors"))).toBe(true);
  const next = await train(out, join(parent, "next"));
  expect(next.code, next.stderr).toBe(0);
  expect(readManifest(join(parent, "next")).start).toBeUndefined();
});

it("a run from the hub records the commit; one that cannot be fetched leaves no run", async () => {
  const model = join(parent, "model");
  await writeGgufModel(await readGgufModel(openGguf(gguf)), model);
  const files = readdirSync(model).map((name) => [name, readFileSync(join(model, name))]);
  const hub = await startHub({ "owner/tiny": Object.fromEntries(files) });
  vi.stubEnv("HF_ENDPOINT", hub.endpoint);
  vi.stubEnv("HF_HOME", join(parent, "hf"));
  const out = join(parent, "hub-run");
  const { code, stderr } = await train("owner/tiny", out);
  expect(code, stderr).toBe(0);
  expect(readManifest(out).start).toEqual({ model: "owner/tiny", revision: COMMIT });
  hub.faults = { status: 401 };
  const refused = await train("owner/other", join(parent, "no-run"));
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/gives no access to owner\/other \(status 401\)/);
  expect(existsSync(join(parent, "no-run"))).toBe(false);
  await hub.close();
});
