/**
 * Training and sampling speed of the embedded engine, compared with PyTorch on the same machine in
 * the same run.
 *
 *   PAWL_PYTHON=/path/to/python npm run bench -- engine [--flat]
 *   npm run bench -- engine --laptop
 *
 * Repetitions of both sides are interleaved and medians compared, so that a busy machine slows
 * both. Both get the same work, and the PyTorch side does it as well as a careful user would.
 * Fields that favour us say so in their name:
 *
 *   train_ratio, train_compiled_ratio    against eager PyTorch; against `torch.compile`
 *   sample_ratio                         64 distinct prompts
 *   sample_grouped_ratio                 8 prompts × 8 samples; both prefill each prompt once
 *   sample_grouped_unshared_ratio        the same, but PyTorch prefills each prompt eight times
 *   peak_share, own_peak_share           of the faster of both libraries' sgemm; of ONNX Runtime's
 *
 * Pretrained models: `models.ts`. `--flat` adds 500 optimiser steps of a smaller model, to check that
 * memory stays flat. `--laptop` measures, without PyTorch, what the default run does with the smallest preset: few sequences of
 * different lengths, and turns of rollouts.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { encodeModel } from "@pawl/engine-cpu/onnx.js";
import { onnxRuntime } from "@pawl/models/onnx-runtime.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { interleave as alternate, machine, peakMemory, startPeer, THREADS } from "./peer/side.js";
import {
  episodeLengths,
  learnOnce,
  million,
  peerModel,
  random,
  reference,
  rollOut,
  sampleOnce,
  tiny,
  trainOnce,
} from "./peer/work.js";

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    flat: { type: "boolean", default: false },
    laptop: { type: "boolean", default: false },
    repetitions: { type: "string", default: "7" },
  },
});
const repetitions = Number(options.repetitions);
const interleave = <Name extends string>(sides: Readonly<Record<Name, () => Promise<number>>>) =>
  alternate(sides, repetitions);

/** The machine's sgemm speed through ONNX Runtime, 2048³, best of several: GFLOP/s. */
async function sgemm(): Promise<number> {
  const n = 2048;
  const value = (name: string) => ({ name, type: "float32" as const, shape: [n, n] });
  const model = encodeModel({
    name: "sgemm",
    nodes: [
      { op: "MatMul", domain: "", inputs: ["a", "b"], outputs: ["c"], attributes: {} },
      { op: "Shape", domain: "", inputs: ["c"], outputs: ["shape"], attributes: {} },
    ],
    inputs: [value("a"), value("b")],
    // Only the shape is returned: copying the product out is not part of the measurement.
    outputs: [{ name: "shape", type: "int64", shape: [2] }],
    constants: [],
  });
  const session = await onnxRuntime().InferenceSession.create(model, {
    intraOpNumThreads: THREADS,
    // Otherwise the product is optimised away.
    graphOptimizationLevel: "disabled",
  });
  const matrix = () =>
    new (onnxRuntime().Tensor)("float32", Float32Array.from({ length: n * n }, random.next), [
      n,
      n,
    ]);
  const feeds = { a: matrix(), b: matrix() };
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 8; i++) {
    const begin = performance.now();
    await session.run(feeds);
    best = Math.min(best, performance.now() - begin);
  }
  await session.release();
  return (2 * n ** 3) / best / 1e6;
}

/**
 * Floating-point operations of an optimiser step: 6 per weight and token, plus causal attention.
 */
function trainingFlops(config: ModelConfig, batch: number, length: number): number {
  const { hiddenSize, layers, mlpSize, vocabularySize } = config;
  const weights = layers * (4 * hiddenSize ** 2 + 3 * hiddenSize * mlpSize);
  const attention = layers * length * hiddenSize;
  return 6 * batch * length * (weights + hiddenSize * vocabularySize + attention);
}

function currentMemory(): number {
  return process.memoryUsage.rss() / 2 ** 20;
}

async function flatMemory(): Promise<number> {
  const engine = await createEmbeddedEngine({ model: { config: million }, threads: THREADS });
  let early = 0;
  for (let step = 0; step < 500; step++) {
    await trainOnce(engine, million, 16, 64);
    if (step === 99) early = currentMemory();
  }
  const grown = currentMemory() - early;
  await engine.dispose();
  return grown;
}

/** Wall-clock and processor seconds of some work. */
async function timed(work: () => Promise<unknown>) {
  const [begin, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { wall: (performance.now() - begin) / 1000, processor: (user + system) / 1e6 };
}

/** What the default run asks of an engine. */
async function laptop(): Promise<Record<string, number | string>> {
  const load = loadavg()[0]!;
  const engine = await createEmbeddedEngine({ model: { config: tiny }, threads: THREADS });
  const steps = Array.from({ length: 40 }, () => episodeLengths(8));
  const update = [episodeLengths(128), episodeLengths(128)];
  const learn = async (batches: readonly (readonly number[])[]) => {
    for (const lengths of batches) await learnOnce(engine, tiny, lengths);
  };
  const tokens = (batches: readonly (readonly number[])[]) =>
    batches.flat().reduce((sum, length) => sum + length, 0);
  await learn([...steps.slice(0, 5), ...update.slice(0, 1)]);
  const small = await timed(() => learn(steps));
  const large = await timed(() => learn(update));
  const played = await timed(() => rollOut(engine));
  await engine.dispose();
  const round = (x: number, digits = 2) => Number(x.toFixed(digits));
  return {
    sft_step_s: round(small.wall / steps.length, 3),
    sft_tokens_per_s: Math.round(tokens(steps) / small.wall),
    sft_tokens_per_processor_s: Math.round(tokens(steps) / small.processor),
    update_tokens_per_s: Math.round(tokens(update) / large.wall),
    update_tokens_per_processor_s: Math.round(tokens(update) / large.processor),
    rollout_s: round(played.wall),
    rollout_processor_s: round(played.processor),
    machine: machine(),
    load: round(load, 1),
  };
}

/** Runs everything. */
export async function main(): Promise<Record<string, number | string>> {
  if (options.laptop) return laptop();
  // Other work on the machine slows both sides, but not equally: it belongs to the result.
  const load = loadavg()[0]!;
  const peer = startPeer("peer.py");
  const hello = await peer.ask({ do: "hello" });
  // Measured between the others, and the best is taken: it stands for what the machine can do.
  const peaks = [await sgemm()];
  const peerPeaks = [(await peer.ask({ do: "sgemm" })).gflops!];
  // Memory first: the peak of a process never falls.
  const engine = await createEmbeddedEngine({ model: { config: reference }, threads: THREADS });
  await peer.ask(peerModel(reference));
  const askTrain = (batch: number, length: number) => async () =>
    (await peer.ask({ do: "train", batch, length })).seconds!;
  const train = await interleave({
    ours: () => trainOnce(engine, reference, 32, 256),
    torch: askTrain(32, 256),
  });
  const memory = {
    ours: peakMemory(),
    torch: (await peer.ask({ do: "hello" })).peak_mb!,
  };
  peaks.push(await sgemm());
  peerPeaks.push((await peer.ask({ do: "sgemm" })).gflops!);
  const askSample = (prompts: number, count: number) => async () =>
    (await peer.ask({ do: "sample", prompts, count, prompt: 128, new: 32 })).seconds!;
  const sample = await interleave({
    ours: () => sampleOnce(engine, reference, 64, 1),
    torch: askSample(64, 1),
    oursGrouped: () => sampleOnce(engine, reference, 8, 8),
    torchGrouped: askSample(8, 8),
  });
  // PyTorch before 2.0 cannot compile; then there is nothing to compare with.
  const canCompile = (await peer.ask(peerModel(reference, true))).compiled;
  const compiled = canCompile
    ? await interleave({
        ours: () => trainOnce(engine, reference, 32, 256),
        torch: askTrain(32, 256),
      })
    : undefined;
  await engine.dispose();
  const small = await createEmbeddedEngine({ model: { config: million }, threads: THREADS });
  const compareSmall = () =>
    interleave({ ours: () => trainOnce(small, million, 64, 128), torch: askTrain(64, 128) });
  await peer.ask(peerModel(million));
  const trainSmall = await compareSmall();
  if (canCompile) await peer.ask(peerModel(million, true));
  const compiledSmall = canCompile ? await compareSmall() : undefined;
  await small.dispose();
  peerPeaks.push((await peer.ask({ do: "sgemm" })).gflops!);
  peer.close();
  peaks.push(await sgemm());
  const [gflops, peerGflops] = [Math.max(...peaks), Math.max(...peerPeaks)];
  const trained = trainingFlops(reference, 32, 256) / train.ours / 1e9;
  const round = (x: number, digits = 2) => Number(x.toFixed(digits));
  return {
    train_ratio: round(train.torch / train.ours),
    ...(compiled && { train_compiled_ratio: round(compiled.torch / compiled.ours) }),
    train_1m_ratio: round(trainSmall.torch / trainSmall.ours),
    ...(compiledSmall && {
      train_1m_compiled_ratio: round(compiledSmall.torch / compiledSmall.ours),
    }),
    sample_ratio: round(sample.torch / sample.ours),
    sample_grouped_ratio: round(sample.torchGrouped / sample.oursGrouped),
    sample_grouped_unshared_ratio: round(sample.torch / sample.oursGrouped),
    memory_ratio: round(memory.ours / memory.torch),
    peak_share: round(trained / Math.max(gflops, peerGflops)),
    own_peak_share: round(trained / gflops),
    train_tokens_per_s: Math.round((32 * 256) / train.ours),
    train_1m_tokens_per_s: Math.round((64 * 128) / trainSmall.ours),
    sample_tokens_per_s: Math.round((64 * 32) / sample.ours),
    sgemm_gflops: Math.round(gflops),
    peer_sgemm_gflops: Math.round(peerGflops),
    memory_mb: Math.round(memory.ours),
    ...(options.flat ? { grown_mb_in_400_steps: round(await flatMemory(), 1) } : {}),
    peer: `PyTorch ${hello.torch}, ${THREADS} threads`,
    machine: machine(),
    load: round(load, 1),
    repetitions,
  };
}
