/**
 * Bytes over HTTP between a run and an engine server (docs/engine-protocol.md): what the client really
 * sends for one prompt or sequence, and the server's answer to it. Headers and futures are left out.
 */
import type { Limits } from "../../src/engine/embedded/checks.js";
import { forward, forwardBackward, type Learning } from "../../src/engine/remote/learning.js";
import { sampleBatch } from "../../src/engine/remote/sampling.js";
import { tensorOf } from "../../src/engine/remote/wire.js";
import { expressionsOf } from "../../src/objectives/expression.js";
import { inputsOf } from "../../src/objectives/expression-interpret.js";
import { objectiveOptions, updateObjective } from "../../src/objectives/objective.js";
import { pawOptions } from "../../src/objectives/paw-options.js";
import { createRandom } from "../../src/random.js";
import type { Task } from "./task.js";

const LIMITS: Limits = { vocabularySize: 151_936, maxContext: 2 ** 20 };

/** PaW's objective, as the paper's recipes have it. */
const objective = updateObjective(objectiveOptions.parse({}), pawOptions.parse({}), {
  critic: false,
});

const random = createRandom(0);
const ids = (count: number) =>
  Array.from({ length: count }, () => random.int(LIMITS.vocabularySize));
const logprobs = (count: number) =>
  Array.from(Float32Array.from({ length: count }, () => -12 * random.next()));

/** Counts what is sent and what is answered. */
function counter() {
  let bytes = 0;
  // Python writes a blank after commas and colons, and the client none.
  const spaced = (value: unknown): number =>
    JSON.stringify(value, null, 1).replace(/\n */g, " ").length;
  return {
    bytes: () => bytes,
    answered: async <T extends object>(body: object, answer: T): Promise<T> => {
      bytes += JSON.stringify(body).length + spaced(answer);
      return answer;
    },
  };
}

/** Bytes of a task. */
export async function wireOf(task: Task): Promise<number> {
  if (task.do === "score" || task.do === "learn")
    return task.sequences * (await sequenceBytes(task.do, task.length));
  if (task.do === "sample") {
    const { prompts, count, prompt, fresh, times = 1 } = task;
    const more = (count - 1) * ((await sampleBytes(1, fresh)) - (await sampleBytes(1, 0)));
    return times * prompts * ((await sampleBytes(prompt, fresh)) + more);
  }
  const { episodes, turns, first, response, observation } = task;
  const mean = Math.round(first + ((turns - 1) / 2) * (response + observation));
  return episodes * turns * (await sampleBytes(mean, response));
}

/** Bytes of one prompt and its sample. */
async function sampleBytes(prompt: number, fresh: number): Promise<number> {
  const { bytes, answered } = counter();
  // Sampled log-probabilities come as lists (servers/torch/pawl_server/service.py).
  const sequence = {
    stop_reason: "length",
    tokens: ids(fresh),
    logprobs: logprobs(fresh),
    sampled_logprobs: logprobs(fresh),
  };
  await sampleBatch([{ prompt: ids(prompt), maxTokens: fresh, seed: 2 ** 31 }], true, (_, body) =>
    answered(body, { results: [{ sequences: [sequence] }] }),
  );
  return bytes();
}

/** Bytes of one sequence that is scored, or learnt with PaW's objective. */
async function sequenceBytes(what: "score" | "learn", length: number): Promise<number> {
  const { bytes, answered } = counter();
  const answer = {
    loss_fn_outputs: [{ logprobs: tensorOf(logprobs(length - 1), "float32", true) }],
    metrics: Object.fromEntries(
      ["loss", ...Object.keys(objective.metrics)].map((name) => [`${name}:sum`, 0.5]),
    ),
  };
  const learning: Learning = {
    server: "",
    limits: () => LIMITS,
    binary: true,
    fused: true,
    extended: true,
    temperatures: true,
    values: () => false,
    read: (_, body) => answered(body, answer),
    change: (_, body) => answered(body, answer),
  };
  const sequence = { ids: ids(length) };
  if (what === "score") {
    await forward(learning, [sequence], { weights: "reference" });
    return bytes();
  }
  const names = inputsOf(...expressionsOf(objective));
  const inputs = Object.fromEntries(names.map((name) => [name, logprobs(length)]));
  await forwardBackward(learning, [{ ...sequence, inputs }], objective);
  // The objective and the metrics go once with a mini-batch, not with every sequence.
  return bytes() - JSON.stringify(objective).length - JSON.stringify(answer.metrics).length;
}
