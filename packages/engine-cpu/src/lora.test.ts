/** Training low-rank adapters on frozen weights. */
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { roadChecks } from "@pawl/core/engine/conformance-testing.js";
import { close, learn, scores, toy } from "@pawl/core/engine/conformance-tools-testing.js";
import { sub, value } from "@pawl/core/objectives/expression.js";
import { inProcess, writeTestModel } from "@pawl/engine-remote/remote/model-testing.js";
import { openCheckpoint, writeCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { LORA_TARGETS, type LoraOptions } from "@pawl/models/weights/lora.js";
import { OUTPUT_HEAD, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EmbeddedOptions } from "./core.js";
import { createEmbeddedEngine } from "./embedded-engine.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-lora-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const [base, certain] = [join(parent, "base"), join(parent, "certain")];

const lora: LoraOptions = { rank: 16, alpha: 32, targets: LORA_TARGETS };
const adapted: EmbeddedOptions = { model: { folder: base }, seed: 1, lora };
const ids = Array.from(toy[0]!.ids);

beforeAll(async () => {
  await writeTestModel(base);
  // A new model's head is too small to be certain of a token, and under adapters it stays that way.
  const { config, tensors, read } = await openCheckpoint(base);
  const data = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const { name, shape } of tensors) {
    const numbers = await read(name);
    data.set(name, { shape, data: name === OUTPUT_HEAD ? numbers.map((x) => 6 * x) : numbers });
  }
  await writeCheckpoint(certain, config, data);
});

describe("the embedded engine conforms with adapters", () => {
  for (const { name, run } of roadChecks)
    it(name, async () => {
      const folder = name.includes("memorises") ? certain : base;
      await run(() => inProcess({ ...adapted, model: { folder } }));
      expect(name).toBeTruthy();
    });
});

describe("adapters", () => {
  it("change nothing at first, then change what the model says, and not its base", async () => {
    const plain = await inProcess({ model: { folder: base } });
    const engine = await inProcess(adapted);
    expect(engine.capabilities.lora).toBe(true);
    const before = await scores(plain, ids);
    expect(await scores(engine, ids)).toEqual(before);
    await learn(engine, toy, 3);
    expect(await scores(engine, ids)).not.toEqual(before);
    const folder = join(parent, "unchanged");
    await engine.save(folder);
    const [old, now] = [await openCheckpoint(base), await openCheckpoint(folder)];
    for (const { name } of old.tensors)
      expect(await now.read(name, { plain: true }), name).toEqual(await old.read(name));
    await plain.dispose();
    await engine.dispose();
  });

  it("are merged for engines without adapters, and for other programs", async () => {
    const engine = await inProcess(adapted);
    await learn(engine, toy, 3);
    const learnt = await scores(engine, ids);
    const [apart, merged] = [join(parent, "apart"), join(parent, "merged")];
    await engine.save(apart);
    await engine.save(merged, { merged: true });
    expect((await openCheckpoint(merged)).adapter).toBeUndefined();
    for (const folder of [apart, merged]) {
      const reader = await inProcess({ model: { folder } });
      close(await scores(reader, ids), learnt, 1e-5);
      await reader.dispose();
    }
    await engine.dispose();
  });

  it("resume to the same bytes, and keep the reference they had", async () => {
    const [one, two] = [await inProcess(adapted), await inProcess({ ...adapted, seed: 5 })];
    await learn(one, toy, 2);
    const halfway = await scores(one, ids);
    await one.snapshotReference();
    const [half, whole, again] = ["half", "whole", "again"].map((name) => join(parent, name)) as [
      string,
      string,
      string,
    ];
    await one.save(half);
    await learn(one, toy, 3);
    const [reference] = await one.forward([{ ids }], { weights: "reference" });
    expect(reference!.logprobs).toEqual(halfway);
    await one.save(whole);
    await two.load(half);
    await two.snapshotReference();
    await learn(two, toy, 3);
    await two.save(again);
    for (const file of ["adapter_model.safetensors", "optimizer.safetensors"])
      expect(readFileSync(join(again, file)).equals(readFileSync(join(whole, file))), file).toBe(
        true,
      );
    // Loading what was saved later leaves the reference alone.
    await two.load(whole);
    const [kept] = await two.forward([{ ids }], { weights: "reference" });
    expect(kept!.logprobs).toEqual(halfway);
    // The frozen weights of a run's checkpoints are one file, also after it was resumed.
    const weights = (folder: string) => statSync(join(folder, "model.safetensors")).ino;
    expect(weights(whole)).toBe(weights(half));
    expect(weights(again)).toBe(weights(half));
    expect(weights(half)).not.toBe(weights(base));
    await one.dispose();
    await two.dispose();
  });

  it("are only of the named projections", async () => {
    const some = { ...lora, targets: ["q_proj", "down_proj"] as const };
    const engine = await inProcess({ ...adapted, lora: some });
    await learn(engine, toy, 2);
    const folder = join(parent, "some");
    await engine.save(folder);
    await engine.dispose();
    const { adapter } = await openCheckpoint(folder);
    const kinds = new Set(adapter!.names.map((name) => name.split(".").at(-3)));
    expect([...kinds]).toEqual(["q_proj", "down_proj"]);
    expect(adapter!.names.length).toBe(2 * 2 * 2);
    const moved = await adapter!.read(adapter!.names.find((name) => name.includes("lora_B"))!);
    expect(moved.some((x) => x !== 0)).toBe(true);
    const refused = (other: LoraOptions, reason: RegExp) =>
      expect(inProcess({ ...adapted, model: { folder }, lora: other })).rejects.toThrow(reason);
    await refused({ ...some, rank: 4 }, /has rank 16, but 4 was requested; set engine.loraRank/);
    await refused({ ...some, alpha: 8 }, /has alpha 32, but 8 was requested; set engine.loraAlpha/);
    await refused(lora, /targets q_proj,down_proj, but q_proj,k_proj/);
  });

  it("are trained together with a value head, which is saved with the weights", async () => {
    const engine = await inProcess({ ...adapted, valueHead: true });
    const squared = { loss: sub(value, 1), metrics: {} };
    await engine.forwardBackward(toy, squared);
    await engine.optimStep({ learningRate: 0.01 });
    const folder = join(parent, "critic");
    await engine.save(folder);
    await engine.save(folder);
    const [before] = await engine.forward([{ ids }], { values: true });
    await engine.dispose();
    const again = await inProcess({ ...adapted, model: { folder }, valueHead: true });
    const [after] = await again.forward([{ ids }], { values: true });
    expect(after!.values).toEqual(before!.values);
    expect(after!.values!.some((x) => x !== 0)).toBe(true);
    await again.dispose();
    const head = await (await openCheckpoint(folder)).read(VALUE_HEAD);
    expect(head.some((x) => x !== 0)).toBe(true);
  });

  it("give the same numbers in several threads, within rounding", async () => {
    const one = await inProcess(adapted);
    const two = await createEmbeddedEngine({ ...adapted, threads: 2 });
    close([await learn(two, toy, 3)], [await learn(one, toy, 3)], 1e-4);
    // Each thread has its own copy of the weights, which a snapshot and new adapters must reach.
    await two.snapshotReference();
    const before = await scores(two, ids);
    await learn(two, toy, 3);
    const [reference] = await two.forward([{ ids }], { weights: "reference" });
    expect(reference!.logprobs).toEqual(before);
    expect(await scores(two, ids)).not.toEqual(before);
    await one.dispose();
    await two.dispose();
  });
});
