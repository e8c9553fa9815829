import { mkdtemp, readdir, readFile, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openCheckpoint, writeCheckpoint } from "./checkpoint.js";
import type { ModelConfig } from "./model-config.js";
import { type TensorData, writeSafetensors } from "./safetensors.js";
import { EMBEDDING, layerNames, OUTPUT_HEAD, tensorSpecs, VALUE_HEAD } from "./tensor-names.js";

const CONFIG: ModelConfig = {
  architecture: "Qwen2ForCausalLM",
  vocabularySize: 11,
  hiddenSize: 6,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 2,
  mlpSize: 5,
  maxContext: 32,
  ropeTheta: 10_000,
  normEps: 1e-5,
  tiedEmbeddings: false,
  qkvBias: true,
};

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "checkpoint-"));
});
afterEach(() => rm(folder, { recursive: true }));

/** Tensors that differ from each other, in small integers that every dtype holds exactly. */
function tensorsOf(config: ModelConfig, { valueHead = false } = {}): Map<string, TensorData> {
  const specs = tensorSpecs(config).filter((spec) => valueHead || !spec.optional);
  return new Map(
    specs.map(({ name, shape }, t) => {
      const length = shape.reduce((product, size) => product * size, 1);
      return [name, { shape, data: Float32Array.from({ length }, (_, i) => ((i + t) % 17) - 8) }];
    }),
  );
}

async function readBack(): Promise<Map<string, TensorData>> {
  const checkpoint = await openCheckpoint(folder);
  const tensors = new Map<string, TensorData>();
  for (const { name, shape } of checkpoint.tensors)
    tensors.set(name, { shape, data: await checkpoint.read(name) });
  return tensors;
}

async function refusal(): Promise<string> {
  const error = await openCheckpoint(folder).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EngineError);
  return (error as Error).message.replaceAll(folder, "FOLDER");
}

/** Writes weights without the checks of writeCheckpoint. */
async function writeUnchecked(tensors: ReadonlyMap<string, TensorData>) {
  await writeCheckpoint(folder, CONFIG, tensorsOf(CONFIG));
  await writeSafetensors(join(folder, "model.safetensors"), tensors);
}

describe("a checkpoint", () => {
  it.each(["F32", "F16", "BF16"] as const)("survives a round trip as %s", async (dtype) => {
    const llama = {
      architecture: "LlamaForCausalLM",
      tiedEmbeddings: true,
      qkvBias: false,
    } as const;
    for (const config of [CONFIG, { ...CONFIG, ...llama }]) {
      const tensors = tensorsOf(config, { valueHead: dtype === "F32" });
      await writeCheckpoint(folder, config, tensors, { dtype });
      expect((await openCheckpoint(folder)).config).toEqual(config);
      expect(await readBack()).toEqual(tensors);
      expect((await readdir(folder)).sort()).toEqual(["config.json", "model.safetensors"]);
    }
  });

  it("has Hugging Face's names and shapes", () => {
    const shapes = new Map(tensorSpecs(CONFIG).map(({ name, shape }) => [name, shape]));
    expect(shapes.size).toBe(3 + 2 * 12 + 1);
    expect(shapes.get("model.embed_tokens.weight")).toEqual([11, 6]);
    expect(shapes.get("model.layers.1.self_attn.q_proj.weight")).toEqual([8, 6]);
    expect(shapes.get("model.layers.1.self_attn.k_proj.bias")).toEqual([4]);
    expect(shapes.get("model.layers.0.self_attn.o_proj.weight")).toEqual([6, 8]);
    expect(shapes.get("model.layers.0.mlp.down_proj.weight")).toEqual([6, 5]);
    expect(shapes.get("lm_head.weight")).toEqual([11, 6]);
    expect(shapes.get("value_head.weight")).toEqual([1, 6]);
  });

  it("may be sharded", async () => {
    const tensors = tensorsOf(CONFIG);
    await writeUnchecked(tensors);
    await unlink(join(folder, "model.safetensors"));
    const entries = [...tensors];
    const shards = { "a-1.safetensors": entries.slice(0, 9), "a-2.safetensors": entries.slice(9) };
    const weightMap: Record<string, string> = {};
    for (const [file, part] of Object.entries(shards)) {
      await writeSafetensors(join(folder, file), new Map(part));
      for (const [name] of part) weightMap[name] = file;
    }
    const writeIndex = (map: Record<string, string>) =>
      writeFile(
        join(folder, "model.safetensors.index.json"),
        JSON.stringify({ metadata: { total_size: 1 }, weight_map: map }),
      );
    await writeIndex(weightMap);
    expect(await readBack()).toEqual(tensors);

    await writeIndex({ ...weightMap, [EMBEDDING]: "a-2.safetensors" });
    expect(await refusal()).toMatch(/embed_tokens\.weight should be in a-2.safetensors, but/);
    await writeIndex({ ...weightMap, [EMBEDDING]: "../a-1.safetensors" });
    expect(await refusal()).toMatch(/weight_map\.model\.embed_tokens\.weight.*in the same folder/);
    await writeIndex({ ...weightMap, [EMBEDDING]: "a-3.safetensors" });
    expect(await refusal()).toMatch(/a-3\.safetensors: cannot be opened/);
  });

  it("may hold redundant tensors", async () => {
    const tied = { ...CONFIG, tiedEmbeddings: true };
    await writeCheckpoint(folder, tied, tensorsOf(tied));
    const inverse = `${layerNames(0).query.replace("q_proj.weight", "rotary_emb.inv_freq")}`;
    await writeSafetensors(
      join(folder, "model.safetensors"),
      new Map([
        ...tensorsOf(tied),
        [OUTPUT_HEAD, { shape: [11, 6], data: new Float32Array(66) }],
        [inverse, { shape: [1], data: Float32Array.of(1) }],
      ]),
    );
    expect(await readBack()).toEqual(tensorsOf(tied));
  });

  it("is rejected with each wrong, missing or unexpected tensor named", async () => {
    const tensors = tensorsOf(CONFIG);
    tensors.set(EMBEDDING, { shape: [6, 11], data: new Float32Array(66) });
    tensors.delete(layerNames(1).keyBias);
    tensors.set("model.layers.2.extra", { shape: [1], data: Float32Array.of(1) });
    tensors.set(VALUE_HEAD, { shape: [6], data: new Float32Array(6) });
    await writeUnchecked(tensors);
    const message = await refusal();
    expect(message).toMatch(/^FOLDER: the weights do not fit the model in config\.json: /);
    expect(message).toContain("model.embed_tokens.weight has shape [6, 11]; expected [11, 6]");
    expect(message).toContain("model.layers.1.self_attn.k_proj.bias is missing; expected [4]");
    expect(message).toContain("value_head.weight has shape [6]; expected [1, 6]");
    expect(message).toContain("model.layers.2.extra [1] is unexpected");
    const writing = writeCheckpoint(folder, CONFIG, tensors);
    await expect(writing).rejects.toThrow(/model\.layers\.2\.extra \[1\] is unexpected/);
  });

  it("is rejected with a dtype that is not a float, and with many problems shortened", async () => {
    await writeUnchecked(tensorsOf(CONFIG));
    const file = join(folder, "model.safetensors");
    const bytes = await readFile(file);
    await writeFile(file, bytes.toString("latin1").replace('"F32"', '"I32"'), "latin1");
    expect(await refusal()).toMatch(
      /embed_tokens\.weight has dtype I32; expected F32, F16 or BF16/,
    );
    await writeUnchecked(new Map());
    expect(await refusal()).toMatch(/embed_tokens.*; and 19 more such problems\. Fetch/);
  });

  it("is rejected if a number in it is not finite", async () => {
    const tensors = tensorsOf(CONFIG);
    tensors.get(layerNames(0).up)!.data[3] = Number.NaN;
    await writeUnchecked(tensors);
    const checkpoint = await openCheckpoint(folder);
    await expect(checkpoint.read(layerNames(0).up)).rejects.toThrow(
      /tensor model\.layers\.0\.mlp\.up_proj\.weight holds NaN at index 3/,
    );
    await expect(checkpoint.read("nothing")).rejects.toThrow(/tensor nothing is missing/);
  });

  it("is rejected without its files", async () => {
    expect(await refusal()).toMatch(/config\.json: cannot be read: ENOENT/);
    await writeCheckpoint(folder, CONFIG, tensorsOf(CONFIG));
    await unlink(join(folder, "model.safetensors"));
    expect(await refusal()).toMatch(/no weights: expected model\.safetensors or model\.safe/);
    await writeFile(join(folder, "config.json"), "{");
    expect(await refusal()).toMatch(/config\.json: cannot be read: .*JSON/);
  });
});
