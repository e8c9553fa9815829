import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { conformanceChecks } from "@pawl/core/engine/conformance-testing.js";
import { type Engine, EngineError, type TrainSequence } from "@pawl/core/engine/engine.js";
import {
  input,
  logprob,
  mul,
  neg,
  type Objective,
  sub,
  value,
} from "@pawl/core/objectives/expression.js";
import { inProcess, testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { tensorSpecs, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import { describe, expect, it } from "vitest";
import type { EmbeddedOptions } from "./core.js";
import { createEmbeddedEngine } from "./embedded-engine.js";
import { type PresetName, presetConfig } from "./init.js";

const options: EmbeddedOptions = { ...testModel, threads: 2 };

const objective: Objective = { loss: mul(input("weight"), neg(logprob)), metrics: {} };

const sequences: readonly TrainSequence[] = Array.from({ length: 24 }, (_, i) => {
  const ids = Array.from({ length: 20 + (i % 9) }, (__, j) => (i * 3 + j * j) % 37);
  return { ids, inputs: { weight: ids.map(() => 0.01) } };
});

describe("the embedded engine conforms", () => {
  for (const { name, run } of conformanceChecks)
    it(name, async () => {
      // In this thread, which starts sooner; with two threads at night.
      await run(() => (isWhole ? createEmbeddedEngine(options) : inProcess(testModel)));
      // A check throws if the engine does not conform.
      expect(name).toBeTruthy();
    });
});

async function weightsAfter(engine: Engine, updates: number): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-engine-"));
  try {
    for (let i = 0; i < updates; i++) {
      await engine.forwardBackward(sequences, objective);
      await engine.optimStep({ learningRate: 1e-3, gradClipNorm: 0.5 });
    }
    await engine.save(folder);
    return await readFile(join(folder, "model.safetensors"));
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe("the embedded engine", () => {
  it("gives the same weights after 6 updates, byte for byte, even next to another engine", async () => {
    const one = await createEmbeddedEngine(options);
    const alone = await weightsAfter(one, 6);
    await one.dispose();
    const pair = await Promise.all([options, options].map(createEmbeddedEngine));
    const together = await Promise.all(pair.map((engine) => weightsAfter(engine, 6)));
    await Promise.all(pair.map((engine) => engine.dispose()));
    expect(together[0]!.equals(alone)).toBe(true);
    expect(together[1]!.equals(alone)).toBe(true);
  });

  it("starts from its seed", async () => {
    const starts = await Promise.all(
      [1, 1, 2].map(async (seed) => {
        const engine = await createEmbeddedEngine({ ...testModel, seed });
        const [result] = await engine.forward([{ ids: [1, 2, 3] }]);
        await engine.dispose();
        return [...result!.logprobs];
      }),
    );
    expect(starts[1]).toEqual(starts[0]);
    expect(starts[2]).not.toEqual(starts[0]);
  });

  it("computes with the weights it has loaded, although they are as many steps old", async () => {
    const folder = await mkdtemp(join(tmpdir(), "pawl-engine-"));
    const asked = async (engine: Engine) => {
      const [scored] = await engine.forward([{ ids: [1, 2, 3] }]);
      const [samples] = await engine.sample([{ prompt: [1, 2], maxTokens: 8, seed: 0 }]);
      await engine.forwardBackward(sequences, objective);
      const { gradNorm } = await engine.discardGradients!();
      return { gradNorm, scored, samples };
    };
    try {
      const other = await createEmbeddedEngine({ ...testModel, seed: 2 });
      await other.save(folder);
      const expected = await asked(other);
      await other.dispose();
      const engine = await createEmbeddedEngine(testModel);
      expect(await asked(engine)).not.toEqual(expected);
      for (let time = 0; time < 2; time++) {
        await engine.load(folder);
        expect(await asked(engine)).toEqual(expected);
      }
      await engine.dispose();
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("trains its value head, and says so if it has none", async () => {
    const error = sub(value, 1);
    const squared: Objective = { loss: mul(error, error), metrics: { value } };
    const critic = await createEmbeddedEngine({ ...testModel, valueHead: true });
    expect(critic.capabilities.values).toBe(true);
    const losses: number[] = [];
    for (let i = 0; i < 30; i++) {
      losses.push((await critic.forwardBackward(sequences, squared)).loss);
      await critic.optimStep({ learningRate: 1e-2 });
    }
    const [result] = await critic.forward(sequences.slice(0, 1), { values: true });
    await critic.dispose();
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 20);
    expect(result!.values![5]).toBeCloseTo(1, 0);
    const plain = await createEmbeddedEngine(testModel);
    await expect(plain.forwardBackward(sequences, squared)).rejects.toThrow(/valueHead: true/);
    await expect(plain.forward(sequences, { values: true })).rejects.toThrow(EngineError);
    await plain.dispose();
  });

  it("has presets of about 0.6, 4 and 20 million parameters", async () => {
    const sizeOf = (preset: PresetName) =>
      tensorSpecs(presetConfig(preset, 512))
        .filter(({ name }) => name !== VALUE_HEAD)
        .reduce((sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1), 0);
    const tiny = await createEmbeddedEngine({ model: { preset: "tiny", vocabularySize: 512 } });
    expect(tiny.capabilities.parameters).toBe(sizeOf("tiny"));
    await tiny.dispose();
    const sizes = (["tiny", "small", "base"] as const).map((preset) => sizeOf(preset) / 1e6);
    expect(sizes[0]).toBeCloseTo(0.6, 1);
    expect(sizes[1]).toBeCloseTo(4, 0);
    expect(Math.abs(sizes[2]! - 20)).toBeLessThan(2);
  });

  it("rejects calls after it was disposed, and can be disposed twice", async () => {
    const engine = await createEmbeddedEngine(testModel);
    await engine.dispose();
    await engine.dispose();
    await expect(engine.forward([{ ids: [1] }])).rejects.toThrow(/disposed/);
  });

  it("says what is wrong with a checkpoint folder", async () => {
    await expect(createEmbeddedEngine({ model: { folder: "/nowhere/at/all" } })).rejects.toThrow(
      /\/nowhere\/at\/all/,
    );
  });

  it("frees native memory when it is disposed", async () => {
    const cycle = async () => {
      const engine = await createEmbeddedEngine({
        model: { preset: "tiny", vocabularySize: 512 },
        threads: 2,
      });
      await engine.forwardBackward(sequences.slice(0, 4), objective);
      await engine.optimStep({ learningRate: 1e-3 });
      await engine.dispose();
    };
    await cycle();
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 3; i++) await cycle();
    const grown = (process.memoryUsage().rss - before) / 2 ** 20;
    // One engine holds about 50 MiB here; three leaked ones would hold three times that.
    expect(grown).toBeLessThan(100);
  });
});
