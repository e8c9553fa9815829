/**
 * The PyTorch server as an engine: the same checks as every engine, and the same numbers as the
 * embedded one.
 *
 * Runs if there is a Python with PyTorch (PAWL_PYTHON, otherwise python3); if not, it says why.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import {
  answered,
  request,
  vocabulary,
} from "@pawl/core/engine/conformance-constraints-testing.js";
import { roadChecks } from "@pawl/core/engine/conformance-testing.js";
import { clipped, close, toy } from "@pawl/core/engine/conformance-tools-testing.js";
import type { Engine, Sample, TrainSequence } from "@pawl/core/engine/engine.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { readPointer } from "@pawl/engine-remote/remote/checkpoints.js";
import { testModel, writeTestModel } from "@pawl/engine-remote/remote/model-testing.js";
import { connectRemoteEngine } from "@pawl/engine-remote/remote/remote-engine.js";
import { openCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { shardCheckpoint } from "@pawl/models/weights/shards-testing.js";
import {
  findTorchPython,
  startTorchServer,
  type TorchServer,
} from "@pawl/pawl/cli/torch-server.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const python = await findTorchPython(process.env).catch((error: Error) => error.message);
const absent = typeof python === "string";
if (absent) console.warn(`the PyTorch server is not tested: ${python}`);
// The launcher of PyTorch 1 does not run under newer Pythons; servers/torch starts its two ranks by hand then.
const alone = absent || /^[01]\./.test(python.torch);
if (alone && !absent)
  console.warn(`torchrun is not tested: PyTorch is ${python.torch}, older than 2`);

const folder = mkdtempSync(join(tmpdir(), "pawl-torch-"));
const model = join(folder, "model");
const checkpoints = join(folder, "checkpoints");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function serve(nproc: number): Promise<TorchServer> {
  if (typeof python === "string") throw new Error(python);
  const options = { model, checkpoints, host: "127.0.0.1", port: 0, nproc, threads: 1 };
  return startTorchServer(python, options, { ...process.env, PAWL_API_KEY: "" }, () => undefined);
}

const inputs = ({ length }: ArrayLike<number>, i: number) => ({
  old: Array.from({ length }, (_, j) => -3.4 - (j % 4) * 0.2),
  advantage: Array.from({ length }, (_, j) => ((i - 4) * 0.5 + j * 0.01) / 100),
  limit: Array.from({ length }, () => 0.009),
});
const sequences: readonly TrainSequence[] = toy.map(({ ids }, i) => ({
  ids,
  targets: Array.from(ids, (_, j) => (j % 5 === 0 ? 0 : 1)),
  inputs: inputs(ids, i),
}));
const adam = { learningRate: 1e-3, weightDecay: 0.1, gradClipNorm: 1, eps: 1e-6 };

/**
 * Largest differences between two engines with the same weights: scores, gradient norms, later
 * weights.
 */
async function compare(a: Engine, b: Engine, sequences: readonly TrainSequence[]) {
  const scores = await Promise.all(
    [a, b].map((each) => each.forward(sequences, { entropies: true })),
  );
  let logprobs = 0;
  let entropies = 0;
  scores[0]!.forEach((expected, i) => {
    expected.logprobs.forEach((x, j) => {
      logprobs = Math.max(logprobs, Math.abs(x - scores[1]![i]!.logprobs[j]!));
      entropies = Math.max(
        entropies,
        Math.abs(expected.entropies![j]! - scores[1]![i]!.entropies![j]!),
      );
    });
  });
  const [mine, theirs] = [await gradientOf(a, sequences), await gradientOf(b, sequences)];
  let apart = 0;
  let length = 0;
  for (const [name, gradient] of mine)
    gradient.forEach((x, i) => {
      apart += (x - theirs.get(name)![i]!) ** 2;
      length += x ** 2;
    });
  const first = await openCheckpoint(model);
  for (const engine of [a, b]) {
    await engine.load(model);
    for (let update = 0; update < 5; update++) {
      await engine.forwardBackward(sequences, clipped);
      await engine.optimStep(adam);
    }
  }
  const saved = await Promise.all(
    [a, b].map(async (each) => openCheckpoint(await savedWeights(each))),
  );
  let weights = 0;
  let moved = 0;
  for (const { name } of saved[0]!.tensors) {
    const [x, y, start] = await Promise.all([...saved, first].map((each) => each.read(name)));
    x!.forEach((value, i) => {
      weights = Math.max(weights, Math.abs(value - y![i]!));
      moved = Math.max(moved, Math.abs(value - start![i]!));
    });
  }
  return { logprobs, entropies, gradient: Math.sqrt(apart / length), weights, moved };
}

/**
 * The gradient, number by number, derived from one optimiser step: without momentum and with ε = 1,
 * Adam moves a weight by g / (|g| + 1).
 */
async function gradientOf(engine: Engine, sequences: readonly TrainSequence[]) {
  await engine.forwardBackward(sequences, clipped);
  const plain = { learningRate: 1, beta1: 0, beta2: 0, eps: 1, weightDecay: 0 };
  await engine.optimStep(plain);
  const [before, after] = [model, await savedWeights(engine)].map(openCheckpoint);
  const gradients = new Map<string, Float64Array>();
  for (const { name } of (await before!).tensors) {
    const [x, y] = [await (await before!).read(name), await (await after!).read(name)];
    const step = Float64Array.from(x, (value, i) => value - y[i]!);
    gradients.set(
      name,
      step.map((moved) => moved / (1 - Math.abs(moved))),
    );
  }
  return gradients;
}

async function savedWeights(engine: Engine): Promise<string> {
  const target = mkdtempSync(join(folder, "saved-"));
  await engine.save(target);
  const pointer = await readPointer(target);
  return pointer === undefined ? target : join(checkpoints, pointer.path);
}

for (const nproc of some([1, 2], 2))
  describe.skipIf(nproc > 1 ? alone : absent)(
    `the PyTorch server, ${nproc} process${nproc > 1 ? "es" : ""}`,
    () => {
      let server: TorchServer | undefined;
      beforeAll(async () => {
        if (nproc > 1 ? alone : absent) return;
        await writeTestModel(model);
        server = await serve(nproc);
      });
      afterAll(() => server?.stop());
      const connect = () => connectRemoteEngine({ url: server!.url, environment: {} });

      /** The same numbers, before and while they learn the same sequences. */
      async function expectAlike(
        here: Engine,
        there: Engine,
        what: string,
        sequences: readonly TrainSequence[],
      ) {
        const differences = await compare(here, there, sequences);
        expect(differences.logprobs).toBeLessThan(1e-4);
        expect(differences.entropies).toBeLessThan(1e-4);
        expect(differences.gradient).toBeLessThan(1e-3);
        expect(differences.weights).toBeLessThan(1e-3);
        // Five optimiser steps of Adam move a weight by up to five learning rates, so the
        // comparison is meaningful.
        expect(differences.moved).toBeGreaterThan(3e-3);
        console.info(`${what}, ${nproc} process(es): ${JSON.stringify(differences)}`);
      }

      it("computes what the embedded engine computes", async () => {
        const [here, there] = [await createEmbeddedEngine(testModel), await connect()];
        await expectAlike(here, there, "against PyTorch", sequences);
        await here.dispose();
        await there.dispose();
      });

      it("answers, scores and learns under masks as the embedded engine does", async () => {
        const [here, there] = [await createEmbeddedEngine(testModel), await connect()];
        const tokens = vocabulary(here.capabilities.vocabularySize);
        for (const engine of [here, there]) engine.useVocabulary!(() => tokens);
        const greedy = { ...request, temperature: 0 };
        const [[mine], [theirs]] = [await here.sample([greedy]), await there.sample([greedy])];
        expect(theirs![0]!.tokens).toEqual(mine![0]!.tokens);
        close(theirs![0]!.logprobs, mine![0]!.logprobs, 1e-4);
        const [drawn] = await there.sample([{ ...request, count: 8 }]);
        const masked = drawn!.map(({ tokens: answer }, i) => {
          const one = answered(answer);
          return { ...one, inputs: inputs(one.ids, i) };
        });
        const scored = await here.forward(masked);
        drawn!.forEach(({ logprobs }, i) => {
          close(scored[i]!.logprobs.subarray(request.prompt.length), logprobs, 1e-4);
        });
        await expectAlike(here, there, "against PyTorch under masks", masked);
        await here.dispose();
        await there.dispose();
      });

      it("takes weights in several files", async () => {
        const sharded = mkdtempSync(join(folder, "sharded-"));
        await writeTestModel(sharded);
        await shardCheckpoint(sharded);
        const engines = [
          await connect(),
          await connectRemoteEngine({ url: server!.url, environment: {}, folder: sharded }),
        ];
        const [whole, cut] = await Promise.all(engines.map((engine) => engine.forward(sequences)));
        expect(cut).toEqual(whole);
        for (const engine of engines) await engine.dispose();
      });

      it("scores a sample at its temperature like the sampler", async () => {
        const engine = await connect();
        const [[drawn]] = (await engine.sample([
          { prompt: [1, 2, 3], maxTokens: 20, seed: 4, temperature: 0.7 },
        ])) as [[Sample]];
        const ids = [1, 2, 3, ...drawn.tokens];
        const [cool, plain] = await engine.forward([
          { ids, temperatures: ids.map(() => 0.7) },
          { ids },
        ]);
        close(cool!.logprobs.subarray(3), drawn.sampledLogprobs!, 1e-4);
        close(plain!.logprobs.subarray(3), drawn.logprobs, 1e-4);
        expect(cool!.logprobs[3]).not.toBeCloseTo(plain!.logprobs[3]!, 3);
        await engine.dispose();
      });

      for (const { name, run } of roadChecks)
        it(name, async () => {
          await run(connect);
          expect(server!.process.exitCode).toBe(null);
        });
    },
  );
