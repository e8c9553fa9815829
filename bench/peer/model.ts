/**
 * A pretrained model in the embedded engine and in transformers with PEFT: the same work, the same
 * threads, f32, in the same minutes.
 *
 *   sample_ratio   16 prompts of 128 tokens, 32 new ones each
 *   train_ratio    a LoRA step of 8 × 512 tokens: forward, backward and AdamW over the adapters
 *   memory_ratio   peak memory of the whole process, after sampling and after both
 *   …processor_ratio   the same in processor time: steadier on a busy machine, but with several
 *                  threads it also counts their waiting; PAWL_BENCH_THREADS=1 avoids that
 *
 * PyTorch samples with its adapters merged, and adds up micro-batches of one sequence, which was as
 * fast as larger ones and needs the least memory.
 */
import { loadavg } from "node:os";
import { input, logprob, mul, neg } from "@pawl/core/objectives/expression.js";
import { createRandom } from "@pawl/core/random.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import { LORA_ALPHA, LORA_TARGETS } from "@pawl/models/weights/lora.js";
import { interleave, machine, median, peakMemory, startPeer, THREADS } from "./side.js";

const RANK = 16;
const SAMPLED = { rows: 16, length: 128, new: 32 } as const;
const TRAINED = { rows: 8, length: 512, micro: 1 } as const;
const objective = { loss: mul(neg(logprob), input("weight")), metrics: {} };

/** Compares both sides; `smollm2` is the GGUF file or the folder that PAWL_SMOLLM2 names. */
export async function compareModel(
  model: string,
  repetitions: number,
): Promise<Record<string, number | string>> {
  const name = model === "smollm2" ? process.env.PAWL_SMOLLM2 : model;
  if (name === undefined)
    throw new Error("--model smollm2: PAWL_SMOLLM2 must name that model's GGUF file or folder");
  const { folder } = (await fetchModel(name)) ?? { folder: name };
  const load = loadavg()[0]!;
  const peer = startPeer("model.py");
  const hello = await peer.ask({ do: "hello" });
  await peer.ask({ do: "model", folder, rank: RANK, alpha: LORA_ALPHA });
  const engine = await createEmbeddedEngine({
    model: { folder },
    threads: THREADS,
    lora: { rank: RANK, alpha: LORA_ALPHA, targets: LORA_TARGETS },
  });
  const random = createRandom(1);
  const { vocabularySize } = engine.capabilities;
  const draw = (count: number) => Array.from({ length: count }, () => random.int(vocabularySize));
  /** Processor seconds of each repetition, by what was done; the first one warms up. */
  const processor = new Map<string, number[]>();
  const note = (what: string, seconds: number) =>
    processor.set(what, [...(processor.get(what) ?? []), seconds]);
  const timed = async (what: string, work: () => Promise<unknown>) => {
    const [begin, before] = [performance.now(), process.cpuUsage()];
    await work();
    const { user, system } = process.cpuUsage(before);
    note(`our ${what}`, (user + system) / 1e6);
    return (performance.now() - begin) / 1000;
  };
  const sample = () => {
    const requests = Array.from({ length: SAMPLED.rows }, (_, seed) => ({
      prompt: draw(SAMPLED.length),
      maxTokens: SAMPLED.new,
      seed,
    }));
    return timed("sample", () => engine.sample(requests));
  };
  const train = () => {
    const sequences = Array.from({ length: TRAINED.rows }, () => {
      // One token more than is predicted, as on the other side.
      const ids = draw(TRAINED.length + 1);
      return { ids, inputs: { weight: ids.map(() => 1 / (TRAINED.rows * TRAINED.length)) } };
    });
    return timed("train", async () => {
      await engine.forwardBackward(sequences, objective);
      await engine.optimStep({ learningRate: 1e-4 });
      // Merging the new adapters is part of a step; sampling would otherwise pay for it.
      await engine.forward([{ ids: [0, 1] }]);
    });
  };
  const asked = (what: string, work: object) => async () => {
    const answer = await peer.ask({ do: what, ...work });
    note(`their ${what}`, answer.processor!);
    return answer.seconds!;
  };
  const ofProcessor = (what: string) => median(processor.get(what)!.slice(1));
  const peaks = async () => ({
    ours: peakMemory(),
    torch: (await peer.ask({ do: "hello" })).peak_mb!,
  });
  const sampled = await interleave({ ours: sample, torch: asked("sample", SAMPLED) }, repetitions);
  const afterSampling = await peaks();
  const trained = await interleave({ ours: train, torch: asked("train", TRAINED) }, repetitions);
  const afterTraining = await peaks();
  peer.close();
  await engine.dispose();
  const round = (x: number, digits = 2) => Number(x.toFixed(digits));
  return {
    sample_ratio: round(sampled.torch / sampled.ours),
    train_ratio: round(trained.torch / trained.ours),
    sample_processor_ratio: round(ofProcessor("their sample") / ofProcessor("our sample")),
    train_processor_ratio: round(ofProcessor("their train") / ofProcessor("our train")),
    sample_memory_ratio: round(afterSampling.ours / afterSampling.torch),
    memory_ratio: round(afterTraining.ours / afterTraining.torch),
    sample_s: round(sampled.ours),
    peer_sample_s: round(sampled.torch),
    train_s: round(trained.ours),
    peer_train_s: round(trained.torch),
    sample_memory_mb: Math.round(afterSampling.ours),
    peer_sample_memory_mb: Math.round(afterSampling.torch),
    memory_mb: Math.round(afterTraining.ours),
    peer_memory_mb: Math.round(afterTraining.torch),
    peer: `PyTorch ${hello.torch}, ${THREADS} threads`,
    machine: machine(),
    load: round(load, 1),
    repetitions,
  };
}
