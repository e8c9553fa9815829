import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { startTestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { readGgufModel, writeGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { tinyModel, writeGguf } from "@pawl/models/gguf/gguf-testing.js";
import { leastMemory, memoryNeeds } from "@pawl/models/model-memory.js";
import { parseModelConfig } from "@pawl/models/weights/config-json.js";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { checkTeacher } from "./open-distillation.js";
import { planRun, type RunPlan, requireMemory, sizePlan, TIGHT } from "./plan.js";
import { trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-plan-"));
beforeAll(async () => {
  const { metadata, tensors } = tinyModel();
  writeGguf(join(folder, "tiny.gguf"), metadata, tensors);
  await writeGgufModel(await readGgufModel(openGguf(join(folder, "tiny.gguf"))), folder);
});
afterAll(() => rmSync(folder, { recursive: true }));
const readJson = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"));

it("counts what is trained, and estimates the memory for it", () => {
  const start = { folder, tokenizer: folder };
  const all = sizePlan(start, tinyConfig())!;
  expect(all.trained).toBe(all.parameters);
  // Seven projections a layer, in 2 layers of width 8: queries and outputs 8 wide, keys and values
  // 4, the MLP 12; 4 numbers for each row and column.
  const adapters = 2 * 4 * (2 * (8 + 8) + 2 * (8 + 4) + 3 * (8 + 12));
  const lora = sizePlan(start, tinyConfig({ engine: { loraRank: 4 } }))!;
  expect(lora).toMatchObject({ parameters: all.parameters, trained: adapters });
  // With adapters merged, the projections are held twice.
  const projections = 2 * (2 * 8 * 8 + 2 * 8 * 4 + 3 * 8 * 12);
  expect(lora.least - leastMemory(all.parameters, adapters)).toBe(4 * projections);
  const some = tinyConfig({ engine: { loraRank: 4, loraTargets: ["q_proj"] } });
  expect(sizePlan(start, some)!.trained).toBe(2 * 4 * (8 + 8));
  expect(
    sizePlan(start, tinyConfig({ engine: { address: "http://127.0.0.1:9" } })),
  ).toBeUndefined();
  expect(sizePlan({ folder: tmpdir(), tokenizer: "" }, tinyConfig())).toBeUndefined();
});

it("counts a teacher that is computed here, and none that a server computes", async () => {
  const start = { folder, tokenizer: folder };
  const planned = async (distillation: object, engine: object = {}) => {
    const config = tinyConfig({ distillation, ...engine });
    return sizePlan(start, config, await checkTeacher(config))!;
  };
  const alone = await planned({});
  const taught = await planned({ teacher: folder });
  const { score } = memoryNeeds(parseModelConfig(readJson("config.json"), ""), alone.parameters);
  expect(taught.teacher).toBe(score);
  expect(taught.memory - alone.memory).toBe(score);
  expect(taught.least - alone.least).toBe(4 * alone.parameters);
  expect(await planned({ teacher: folder, engine: "http://127.0.0.1:9" })).toEqual(alone);
  const dry = await planRun(tinyConfig({ distillation: { teacher: "o/absent" } }));
  expect(dry.time).toEqual({ unknown: expect.stringContaining("o/absent is not here yet") });
});

it("refuses what cannot fit, with what would", () => {
  const sizes = (parameters: number, trained: number, here: number, teacher?: number) => () =>
    requireMemory({
      ...{ parameters, trained, adapters: trained < parameters, here, memory: here },
      ...(teacher !== undefined && { teacher }),
      least: leastMemory(parameters, trained),
      leastFrozen: leastMemory(2 * parameters, 0),
    });
  expect(sizes(1.5e9, 1.5e9, 16e9)).toThrow(
    /training 1500 of 1500 million parameters takes at least 30.3 GB of memory, and there are 16.0 GB here: train adapters \(--engine.lora-rank 16\), take a smaller model, or train on an engine server/,
  );
  expect(sizes(7e9, 7e9, 16e9)).toThrow(/here: take a smaller model/);
  expect(sizes(7e9, 4e7, 16e9)).toThrow(/here: take a smaller model/);
  expect(sizes(1.5e9, 2e7, 16e9)).not.toThrow();
  expect(sizes(7e9, 4e7, 16e9, 2e9)).toThrow(
    /beside its teacher takes .* here: let a server have the teacher \(--distillation.engine\), take/,
  );
});

it("does not try what may not fit", async () => {
  const config = tinyConfig({ model: { start: folder } });
  const { least, memory } = sizePlan({ folder, tokenizer: folder }, config)!;
  const here = vi.spyOn(process, "constrainedMemory").mockReturnValue((least + memory) / 2);
  try {
    expect((await planRun(config)).time).toEqual({ unknown: TIGHT });
  } finally {
    here.mockRestore();
  }
});

it("measures a model from scratch without changing what it learns", async () => {
  const config = tinyConfig({ updates: 1 });
  let plan: RunPlan | undefined;
  const learnt = async (name: string, onPlan?: (told: RunPlan) => void) => {
    const run = join(folder, name);
    await trainRun(config, { folder: run, ...(onPlan && { onPlan }) });
    return readFileSync(join(run, "checkpoints", "000001", "model.safetensors"));
  };
  const told = await learnt("told", (one) => {
    plan = { ...plan, ...one };
  });
  expect(told.equals(await learnt("untold"))).toBe(true);
  expect(plan).toMatchObject({
    size: { adapters: false, trained: plan!.size!.parameters },
    time: { episodes: 6, steps: 3, update: expect.any(Number) },
  });
  // Beforehand, without a run: the same but for the words of some tasks.
  const before = await planRun(config);
  expect(before).toMatchObject({ time: { episodes: 6, steps: 3 } });
});

it("measures on an engine server, and leaves nothing there", async () => {
  const served = (extensions: boolean) =>
    startTestServer({ model: testModel, folder: join(folder, `server-${extensions}`), extensions });
  const [own, plain] = [await served(true), await served(false)];
  try {
    const planned = async (address: string) =>
      (await planRun(tinyConfig({ engine: { address } }))).time;
    expect(await planned(own.url)).toMatchObject({
      episodes: 6,
      steps: 3,
      learnt: expect.any(Number),
    });
    const made = own.counts.get("create_model");
    expect([made, own.counts.get("unload_model")]).toEqual([1, 1]);
    expect(await planned(plain.url)).toEqual({
      unknown: `the engine server at ${plain.url} cannot take back a trial of learning`,
    });
    expect(plain.counts.get("create_model")).toBeUndefined();
  } finally {
    await Promise.all([own.close(), plain.close()]);
  }
});

it("measures what was fetched before, without asking anybody", async () => {
  const cache = join(folder, "cache");
  const snapshot = join(cache, "models--o--tiny", "snapshots", "0".repeat(40));
  mkdirSync(snapshot, { recursive: true });
  for (const file of [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "model.safetensors",
  ])
    copyFileSync(join(folder, file), join(snapshot, file));
  mkdirSync(join(cache, "models--o--tiny", "refs"));
  writeFileSync(join(cache, "models--o--tiny", "refs", "main"), "0".repeat(40));
  vi.stubEnv("HF_HUB_CACHE", cache);
  vi.stubEnv("HF_ENDPOINT", "http://127.0.0.1:9");
  const { size, time } = await planRun(
    // Its context is too small for what a teacher would show.
    tinyConfig({ model: { start: "o/tiny" }, warmStart: { episodes: 0 } }),
  );
  vi.unstubAllEnvs();
  expect(size!.parameters).toBeGreaterThan(0);
  expect(time).toMatchObject({ steps: 3, update: expect.any(Number) });
});

it("says why minutes are unknown", async () => {
  const reason = async (changes: Readonly<Record<string, unknown>>) =>
    (await planRun(tinyConfig(changes))).time;
  expect(await reason({ engine: { address: "http://127.0.0.1:9" } })).toEqual({
    unknown: expect.stringMatching(/^the engine server at http:\/\/127.0.0.1:9 does not answer/),
  });
  for (const start of ["someone/model", "someone/model/a.gguf", "pypi:smollm2-135m-instruct"])
    expect(await reason({ model: { start } })).toEqual({
      unknown: `${start} is not here yet; fetch it first (pawl model pull ${start}), or the first lines of the run say it`,
    });
  const served = { model: { start: "served" }, engine: { address: "http://127.0.0.1:9" } };
  expect(await reason(served)).toEqual({
    unknown: expect.stringMatching(/^the model's tokenizer is on the engine server/),
  });
  const sampler = { address: "http://127.0.0.1:9", sampler: "http://127.0.0.1:9" };
  expect(await reason({ engine: sampler })).toEqual({
    unknown: "the sampler gets the model from the run",
  });
  expect(await reason({ updates: 0, warmStart: { episodes: 0 } })).toEqual({
    unknown: "there is no episode of a teacher to estimate from",
  });
});
