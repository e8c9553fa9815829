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
import type { Engine } from "@pawl/core/engine/engine.js";
import { input, logprob, mul, neg } from "@pawl/core/objectives/expression.js";
import { createRandom } from "@pawl/core/random.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { encodeModel } from "@pawl/engine-cpu/onnx.js";
import { onnxRuntime } from "@pawl/models/onnx-runtime.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { interleave as alternate, machine, peakMemory, startPeer, THREADS } from "./peer/side.js";

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

const reference = modelConfig({ dim: 256, layers: 4, heads: 4, inner: 1024, vocab: 2048 });
const million = modelConfig({ dim: 128, layers: 4, heads: 4, inner: 512, vocab: 256 });

function modelConfig(size: {
  readonly dim: number;
  readonly layers: number;
  readonly heads: number;
  readonly inner: number;
  readonly vocab: number;
}): ModelConfig {
  return {
    vocabularySize: size.vocab,
    hiddenSize: size.dim,
    layers: size.layers,
    heads: size.heads,
    kvHeads: size.heads,
    headSize: size.dim / size.heads,
    mlpSize: size.inner,
    maxContext: 1024,
    ropeTheta: 10_000,
    normEps: 1e-6,
    tiedEmbeddings: false,
    qkvBias: false,
  };
}

function peerModel(config: ModelConfig, compiled = false) {
  return {
    do: "model",
    dim: config.hiddenSize,
    layers: config.layers,
    heads: config.heads,
    inner: config.mlpSize,
    vocab: config.vocabularySize,
    compiled,
  };
}

const random = createRandom(1);
const randomIds = (count: number, config: ModelConfig) =>
  Array.from({ length: count }, () => Math.floor(random.next() * config.vocabularySize));

const objective = { loss: mul(neg(logprob), input("weight")), metrics: {} };

async function trainOnce(engine: Engine, config: ModelConfig, batch: number, length: number) {
  // One token more than is predicted, as on the other side.
  const sequences = Array.from({ length: batch }, () => {
    const ids = randomIds(length + 1, config);
    return { ids, inputs: { weight: ids.map(() => 1 / (batch * length)) } };
  });
  const begin = performance.now();
  await engine.forwardBackward(sequences, objective);
  await engine.optimStep({ learningRate: 1e-3 });
  return (performance.now() - begin) / 1000;
}

async function sampleOnce(engine: Engine, config: ModelConfig, groups: number, count: number) {
  const requests = Array.from({ length: groups }, (_, seed) => ({
    prompt: randomIds(128, config),
    maxTokens: 32,
    count,
    seed,
  }));
  const begin = performance.now();
  await engine.sample(requests);
  return (performance.now() - begin) / 1000;
}

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

/**
 * The default run's work: supervised optimiser steps on 8 episodes, one on 128, and a rollout of
 * 128 episodes with 20 turns.
 */
async function laptop(): Promise<Record<string, number | string>> {
  const load = loadavg()[0]!;
  const vocabularySize = 420;
  const engine = await createEmbeddedEngine({
    model: { preset: "tiny", vocabularySize, maxContext: 768 },
    threads: THREADS,
  });
  const draw = (count: number) => Array.from({ length: count }, () => random.int(vocabularySize));
  const episodes = (count: number) =>
    Array.from({ length: count }, () => {
      const ids = draw(100 + random.int(350));
      return { ids, inputs: { weight: ids.map(() => 1 / 2000) } };
    });
  const learn = async (batches: readonly ReturnType<typeof episodes>[]) => {
    for (const batch of batches) {
      await engine.forwardBackward(batch, objective);
      await engine.optimStep({ learningRate: 1e-3 });
    }
    return batches.flat().reduce((sum, { ids }) => sum + ids.length, 0);
  };
  const rollout = async () => {
    let prompts = Array.from({ length: 128 }, () => draw(43));
    for (let turn = 0; turn < 20; turn++) {
      const requests = prompts.map((prompt, row) => ({
        prompt,
        maxTokens: 6,
        continued: true,
        seed: row,
      }));
      const samples = await engine.sample(requests);
      // Every fifth sample is re-encoded, as can happen to text that is read back.
      prompts = prompts.map((prompt, row) => {
        const { tokens } = samples[row]![0]!;
        return [...prompt, ...(row % 5 === 0 ? draw(6) : tokens), ...draw(11)];
      });
    }
  };
  const steps = Array.from({ length: 40 }, () => episodes(8));
  const update = [episodes(128), episodes(128)];
  await learn([...steps.slice(0, 5), ...update.slice(0, 1)]);
  let tokens = 0;
  const small = await timed(async () => {
    tokens = await learn(steps);
  });
  let many = 0;
  const large = await timed(async () => {
    many = await learn(update);
  });
  const played = await timed(rollout);
  await engine.dispose();
  const round = (x: number, digits = 2) => Number(x.toFixed(digits));
  return {
    sft_step_s: round(small.wall / steps.length, 3),
    sft_tokens_per_s: Math.round(tokens / small.wall),
    sft_tokens_per_processor_s: Math.round(tokens / small.processor),
    update_tokens_per_s: Math.round(many / large.wall),
    update_tokens_per_processor_s: Math.round(many / large.processor),
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
