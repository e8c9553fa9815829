import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeTestModel } from "@pawl/engine-remote/remote/model-testing.js";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { ADAPTER_FILES } from "./adapter.js";
import { openCheckpoint, writeCheckpoint } from "./checkpoint.js";
import { writeSafetensors } from "./safetensors.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-adapter-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const rank = 3;
const tensor = "model.layers.1.self_attn.k_proj.weight";
const stem = "base_model.model.model.layers.1.self_attn.k_proj";
const [outputs, inputs] = [16, 32];
const up = Float32Array.from({ length: outputs * rank }, (_, i) => Math.sin(i));
const down = Float32Array.from({ length: rank * inputs }, (_, i) => Math.cos(3 * i));
const config = { peft_type: "LORA", r: rank, lora_alpha: 12, bias: "none", use_dora: false };

let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(parent, "model-"));
  await writeTestModel(folder);
});

async function adapt(fields: object, shape: readonly [number, number] = [outputs, rank]) {
  const tensors = new Map([
    [`${stem}.lora_A.weight`, { shape: [rank, inputs], data: down }],
    [`${stem}.lora_B.weight`, { shape: [...shape], data: up }],
  ]);
  await writeSafetensors(join(folder, ADAPTER_FILES[0]), tensors);
  writeFileSync(join(folder, ADAPTER_FILES[1]), JSON.stringify(fields));
}

/** How much row and column of the adapted tensor should differ from the plain one. */
const expected = (row: number, column: number, scale: number) =>
  scale * [0, 1, 2].reduce((sum, k) => sum + up[row * rank + k]! * down[k * inputs + column]!, 0);

describe("an adapter next to a checkpoint's weights", () => {
  for (const [fields, scale] of [
    [config, 12 / rank],
    [{ ...config, use_rslora: true }, 12 / Math.sqrt(rank)],
  ] as const)
    it(`is added, times ${scale.toFixed(2)}`, async () => {
      const plain = await openCheckpoint(folder);
      await adapt(fields);
      const adapted = await openCheckpoint(folder);
      for (const { name } of plain.tensors) {
        const [a, b] = [await plain.read(name), await adapted.read(name)];
        if (name !== tensor) expect(b).toEqual(a);
        else
          for (const [row, column] of [
            [0, 0],
            [0, 31],
            [15, 4],
            [7, 18],
          ] as const) {
            const i = row * inputs + column;
            expect(b[i]! - a[i]!).toBeCloseTo(expected(row, column, scale), 4);
          }
      }
    });

  it("is removed when other weights are written over it", async () => {
    await adapt(config);
    const read = await openCheckpoint(folder);
    const tensors = new Map<string, { shape: readonly number[]; data: Float32Array }>();
    for (const { name, shape } of read.tensors)
      tensors.set(name, { shape, data: await read.read(name) });
    await writeCheckpoint(folder, read.config, tensors);
    for (const file of ADAPTER_FILES) expect(existsSync(join(folder, file))).toBe(false);
    const again = await openCheckpoint(folder);
    expect(await again.read(tensor)).toEqual(tensors.get(tensor)!.data);
  });

  it("is rejected by name if it is of another kind, or of another model", async () => {
    const refused = (reason: RegExp) => expect(openCheckpoint(folder)).rejects.toThrow(reason);
    for (const [change, reason] of [
      [{ use_dora: true }, /adapter_config.json: use_dora is not as expected/],
      [{ modules_to_save: ["lm_head"] }, /modules_to_save/],
      [{ rank_pattern: { q_proj: 2 } }, /rank_pattern/],
      [{ peft_type: "IA3" }, /peft_type/],
      [{ r: 2 }, /has shape \[3,32\]; expected \[2,32\] for rank 2/],
    ] as const) {
      await adapt({ ...config, ...change });
      await refused(reason);
    }
    await adapt(config, [rank, outputs]);
    await refused(/lora_B.weight has shape \[3,16\]; expected \[16,3\]/);
    const file = join(folder, ADAPTER_FILES[0]);
    writeFileSync(file, readFileSync(file, "latin1").replaceAll("k_proj", "x_proj"), "latin1");
    await refused(/x_proj.lora_A.weight belongs to no tensor of this model/);
    writeFileSync(join(folder, ADAPTER_FILES[1]), "{");
    await refused(/not valid JSON/);
  });
});
