/**
 * A pretrained model in the embedded engine and in transformers with PEFT: the same work, the same
 * threads, f32, in the same minutes.
 *
 *   PAWL_PYTHON=/path/to/python npm run bench -- models MODEL [--work update] [--repetitions 3] [--alone]
 *
 *   update   8 first prompts of recipes/real-model.ts, 8 answers of 8 tokens each, and a LoRA step that
 *            learns the 64 answers; apart, also `answer` and `learn`
 *   sample   16 prompts of 128 random tokens, 32 new ones each
 *   train    a LoRA step of 8 × 512 random tokens, all of them targets
 *
 * Each work has `…_ratio` (PyTorch's seconds ÷ ours), `…_processor_ratio` (processor seconds, of all
 * threads also while they wait: steadier on a busy machine) and `…_memory_ratio`: peak memory of the
 * whole process when the work is done, ours ÷ PyTorch's; works are done in the order above.
 *
 * With `--alone` only our side is measured. PyTorch samples with its adapters merged, computes logits only of targets, and adds up micro-batches.
 * It reads a prompt once for each answer: `generate` does, and so does training in padded batches.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Engine } from "@pawl/core/engine/engine.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { input, logprob, mul, neg } from "@pawl/core/objectives/expression.js";
import { createRandom } from "@pawl/core/random.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { imitationSequences } from "@pawl/core/train/sft.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import { LORA_ALPHA, LORA_TARGETS } from "@pawl/models/weights/lora.js";
import recipe from "../recipes/real-model.js";
import { interleave, machine, median, peakMemory, startPeer, THREADS } from "./peer/side.js";

const RANK = recipe.engine.loraRank;
const ANSWERED = { tasks: 8, count: 8, new: 8, micro: 8 } as const;
const SAMPLED = { rows: 16, length: 128, new: 32 } as const;
const TRAINED = { rows: 8, length: 512, micro: 1 } as const;
const objective = { loss: mul(neg(logprob), input("weight")), metrics: {} };

type Answer = { readonly prompt: readonly number[]; readonly tokens: readonly number[] };

/** The first prompts of the recipe's tasks, as token ids. */
async function firstPrompts(folder: string): Promise<readonly (readonly number[])[]> {
  const environment = openEnvironment(recipe.env);
  const tokenizer = await loadTokenizer(folder);
  const style = promptStyle(environment.prompt, { style: "chat" }, tokenizer);
  const policy = expertPolicy(environment.expert!);
  const tasks = environment.tasks("train").slice(0, ANSWERED.tasks);
  const shown = await rollout({ environment, style, policy, tasks, groupSize: 1, seed: 0 });
  return shown.map(({ episodes }) => {
    const how = { observationWeight: 0, randomActions: false };
    const [first] = imitationSequences(episodes[0]!, { tokenizer, style }, how);
    const { ids, targets } = first!;
    return Array.from(ids).slice(0, Array.from(targets!).indexOf(1));
  });
}

/** An optimiser step that learns the answers; returns their log-probabilities. */
async function learnAnswers(engine: Engine, answers: readonly Answer[]) {
  const weight = 1 / (answers.length * ANSWERED.new);
  const sequences = answers.map(({ prompt, tokens }) => {
    const ids = [...prompt, ...tokens];
    const targets = ids.map((_, i) => (i >= prompt.length ? 1 : 0));
    return { ids, targets, inputs: { weight: ids.map(() => weight) } };
  });
  const { logprobs } = await engine.forwardBackward(sequences, objective);
  await engine.optimStep({ learningRate: 1e-4 });
  // Merging the new adapters is part of a step; sampling would otherwise pay for it.
  await engine.forward([{ ids: [0, 1] }]);
  return logprobs.flatMap((row, i) => [...row.slice(answers[i]!.prompt.length)]);
}

/** Compares both sides; MODEL is any name that `pawl model info` takes. */
export async function main(args: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      work: { type: "string", default: "update,sample,train" },
      repetitions: { type: "string", default: "3" },
      alone: { type: "boolean", default: false },
    },
  });
  const [name] = positionals;
  if (name === undefined) throw new Error("name a model: a GGUF file, a folder, or a hub id");
  const repetitions = Number(values.repetitions);
  const wanted = (work: string) => values.work.split(",").includes(work);
  const { folder } = (await fetchModel(name)) ?? { folder: name };
  const load = loadavg()[0]!;
  const peer = values.alone ? undefined : startPeer("model.py");
  const hello = await peer?.ask({ do: "hello" });
  await peer?.ask({ do: "model", folder, rank: RANK, alpha: LORA_ALPHA });
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
    note(`ours ${what}`, (user + system) / 1e6);
    return (performance.now() - begin) / 1000;
  };
  const asked = async (what: string, work: object) => {
    const answer = await peer!.ask({ do: what, ...work });
    note(`torch ${what}`, answer.processor!);
    return answer;
  };
  const prompts = wanted("update") ? await firstPrompts(folder) : [];
  let answers: readonly Answer[] = [];
  let asking = 0;
  let apart: number | undefined;
  const answer = async () => {
    asking += 1;
    const { count, new: maxTokens } = ANSWERED;
    const requests = prompts.map((prompt, i) => ({
      ...{ prompt, count, maxTokens },
      seed: 1000 * asking + i,
    }));
    const samples = await engine.sample(requests);
    answers = prompts.flatMap((prompt, i) => samples[i]!.map(({ tokens }) => ({ prompt, tokens })));
  };
  let logprobs: readonly number[] = [];
  const works: Readonly<Record<string, Readonly<Record<"ours" | "torch", () => Promise<number>>>>> =
    {
      answer: {
        ours: () => timed("answer", answer),
        torch: async () => (await asked("answer", { prompts, ...ANSWERED })).seconds!,
      },
      learn: {
        ours: () =>
          timed("learn", async () => {
            logprobs = await learnAnswers(engine, answers);
          }),
        torch: async () => {
          const learnt = await asked("learn", { answers, ...ANSWERED });
          const theirs = learnt.logprobs as unknown as readonly number[];
          // Before the first step both are the same model.
          apart ??= Math.max(...theirs.map((one, i) => Math.abs(one - logprobs[i]!)));
          return learnt.seconds!;
        },
      },
      sample: {
        ours: () => {
          const requests = Array.from({ length: SAMPLED.rows }, (_, seed) => ({
            prompt: draw(SAMPLED.length),
            maxTokens: SAMPLED.new,
            seed,
          }));
          return timed("sample", () => engine.sample(requests));
        },
        torch: async () => (await asked("sample", SAMPLED)).seconds!,
      },
      train: {
        ours: () => {
          const sequences = Array.from({ length: TRAINED.rows }, () => {
            // One token more than is predicted, as on the other side.
            const ids = draw(TRAINED.length + 1);
            return { ids, inputs: { weight: ids.map(() => 1 / (TRAINED.rows * TRAINED.length)) } };
          });
          return timed("train", async () => {
            await engine.forwardBackward(sequences, objective);
            await engine.optimStep({ learningRate: 1e-4 });
            await engine.forward([{ ids: [0, 1] }]);
          });
        },
        torch: async () => (await asked("train", TRAINED)).seconds!,
      },
    };
  const shown = (x: number) => Number(x.toPrecision(3));
  const figures: Record<string, number> = {};
  const compare = async (what: string, parts: readonly string[]) => {
    const involved = peer === undefined ? (["ours"] as const) : (["ours", "torch"] as const);
    const seconds = await interleave(
      Object.fromEntries(
        parts.flatMap((part) =>
          involved.map((side) => [`${side} ${part}`, works[part]![side]] as const),
        ),
      ),
      repetitions,
    );
    const fields = [[what, parts] as const, ...parts.map((part) => [part, [part]] as const)];
    for (const [field, named] of parts.length > 1 ? fields : fields.slice(1)) {
      const sum = (side: "ours" | "torch", of: (key: string) => number) =>
        named.reduce((total, part) => total + of(`${side} ${part}`), 0);
      const processorOf = (key: string) => median(processor.get(key)!.slice(1));
      for (const [unit, of] of [
        ["_s", (key: string) => seconds[key]!],
        ["_processor_s", processorOf],
      ] as const) {
        const ours = sum("ours", of);
        figures[`${field}${unit}`] = shown(ours);
        if (peer === undefined) continue;
        const torch = sum("torch", of);
        figures[`peer_${field}${unit}`] = shown(torch);
        figures[`${field}${unit.replace(/s$/, "ratio")}`] = shown(torch / ours);
      }
    }
    const ourMemory = peakMemory();
    figures[`${what}_memory_mb`] = Math.round(ourMemory);
    if (peer === undefined) return;
    const torchMemory = (await peer.ask({ do: "hello" })).peak_mb!;
    figures[`peer_${what}_memory_mb`] = Math.round(torchMemory);
    figures[`${what}_memory_ratio`] = shown(ourMemory / torchMemory);
  };
  if (wanted("update")) await compare("update", ["answer", "learn"]);
  for (const work of ["sample", "train"]) if (wanted(work)) await compare(work, [work]);
  peer?.close();
  await engine.dispose();
  return {
    ...figures,
    ...(apart !== undefined && { logprobs_apart: Number(apart.toPrecision(2)) }),
    threads: THREADS,
    ...(hello !== undefined && { peer: `PyTorch ${hello.torch}` }),
    machine: machine(),
    load: shown(load),
    repetitions,
  };
}
