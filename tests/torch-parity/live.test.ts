/**
 * Every supported architecture against transformers itself, with random weights that transformers
 * makes and saves: reading, scoring, learning, sampling, and writing back.
 *
 * Runs if PAWL_PYTHON, or else python3, has transformers; `parity.test.ts` needs no Python.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEmbeddedEngine } from "../../src/engine/embedded/embedded-engine.js";
import { flatTensors } from "../../src/engine/embedded/flat-tensors.js";
import { createMoments, createWeightLearner } from "../../src/engine/embedded/learner.js";
import { createModelWeights } from "../../src/engine/embedded/model-weights.js";
import { createReplica } from "../../src/engine/embedded/replica.js";
import { createSessions } from "../../src/engine/embedded/sessions.js";
import { openCheckpoint } from "../../src/engine/weights/checkpoint.js";
import { input, logprob, mul } from "../../src/objectives/expression.js";

interface Results {
  readonly ids: readonly (readonly number[])[];
  readonly prompt: readonly number[];
  readonly models: Readonly<
    Record<
      string,
      {
        readonly architecture: string;
        readonly logprobs: readonly (readonly number[])[];
        readonly gradients: Readonly<Record<string, readonly number[]>>;
        readonly greedy: readonly number[];
      }
    >
  >;
}

const python = process.env.PAWL_PYTHON ?? "python3";
const absent = spawnSync(python, ["-c", "import torch, transformers"]).status !== 0;
if (absent)
  console.warn(`architectures are not compared live: ${python} has no PyTorch and transformers`);

const folder = mkdtempSync(join(tmpdir(), "pawl-architectures-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const [theirs, ours] = [join(folder, "theirs"), join(folder, "ours")];

function transformers(command: "make" | "read", root: string): Results {
  const script = fileURLToPath(new URL("./live.py", import.meta.url));
  const env = { ...process.env, OMP_NUM_THREADS: "1" };
  execFileSync(python, [script, command, root], { env, stdio: "pipe" });
  return JSON.parse(readFileSync(join(root, "results.json"), "utf8")) as Results;
}

function largestDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  return Math.max(...Array.from(expected, (x, i) => Math.abs(actual[i]! - x)));
}

describe.skipIf(absent)("architectures, if there is a Python with transformers", () => {
  let expected: Results;
  let names: readonly string[];
  beforeAll(() => {
    expected = transformers("make", theirs);
    names = readdirSync(theirs).filter((name) => name !== "results.json");
  }, 600_000);

  it("have its log-probabilities and gradients", async () => {
    expect(names.length).toBeGreaterThan(6);
    for (const name of names) {
      const checkpoint = await openCheckpoint(join(theirs, name));
      const { config, tensors: specs } = checkpoint;
      const parameters = flatTensors(specs);
      for (const [tensor, values] of parameters.tensors) values.set(await checkpoint.read(tensor));
      const sessions = createSessions(2);
      const learner = createWeightLearner({
        config,
        weights: createModelWeights(config, parameters, sessions),
        moments: createMoments(specs),
        sessions,
        replicas: [createReplica({ config, replicas: 1 }, sessions)],
      });
      const { logprobs } = await learner.forwardBackward(
        expected.ids.map((ids) => ({
          ids,
          inputs: { weight: ids.map((_, i) => 0.5 + 0.1 * (i % 5)) },
        })),
        { loss: mul(logprob, input("weight")), metrics: {} },
      );
      const model = expected.models[name]!;
      logprobs.forEach((found, i) => {
        expect(largestDifference(found, model.logprobs[i]!), name).toBeLessThan(1e-4);
      });
      expect([...learner.gradients.keys()].sort(), name).toEqual(
        Object.keys(model.gradients).sort(),
      );
      for (const [tensor, gradient] of Object.entries(model.gradients))
        expect(
          largestDifference(learner.gradients.get(tensor)!, gradient) / Math.hypot(...gradient),
          `${name}: ${tensor}`,
        ).toBeLessThan(1e-3);
      await sessions.dispose();
    }
  }, 600_000);

  it("continue a prompt as it does, prefilled at once and behind a cached prefix", async () => {
    for (const name of names) {
      const { greedy } = expected.models[name]!;
      const engine = await createEmbeddedEngine({
        model: { folder: join(theirs, name) },
        threads: 1,
      });
      const ask = async (prompt: readonly number[], maxTokens: number, continued: boolean) => {
        const request = { prompt, maxTokens, temperature: 0, seed: 0, continued };
        const [[sample] = []] = await engine.sample([request]);
        return sample!.tokens;
      };
      expect(await ask(expected.prompt, greedy.length, false), name).toEqual(greedy);
      // Turn by turn: every prompt but the first continues from a cache.
      await ask(expected.prompt.slice(0, 40), 1, true);
      const found: number[] = [];
      while (found.length < greedy.length)
        found.push(...(await ask([...expected.prompt, ...found], 8, true)));
      expect(found, name).toEqual(greedy);
      await engine.save(join(ours, name), { optimizer: false });
      await engine.dispose();
    }
  }, 600_000);

  it("are written so that transformers reads the same model", () => {
    const again = transformers("read", ours);
    expect(Object.keys(again.models).sort()).toEqual([...names].sort());
    for (const [name, model] of Object.entries(again.models)) {
      expect(model.architecture, name).toBe(expected.models[name]!.architecture);
      expect(model.greedy, name).toEqual(expected.models[name]!.greedy);
      model.logprobs.forEach((found, i) => {
        expect(largestDifference(found, expected.models[name]!.logprobs[i]!), name).toBeLessThan(
          1e-5,
        );
      });
    }
  }, 600_000);
});
