/** The largest differences of the prototype's numbers from the embedded engine's. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { flatTensors } from "@pawl/engine-cpu/flat-tensors.js";
import { initialWeights } from "@pawl/engine-cpu/init.js";
import { createMoments, createWeightLearner } from "@pawl/engine-cpu/learner.js";
import { createModelWeights } from "@pawl/engine-cpu/model-weights.js";
import { createReplica } from "@pawl/engine-cpu/replica.js";
import { createSessions } from "@pawl/engine-cpu/sessions.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import {
  EMBEDDING,
  FINAL_NORM,
  layerNames,
  OUTPUT_HEAD,
  tensorSpecs,
} from "@pawl/models/weights/tensor-names.js";
import type { Peer } from "../peer/side.js";
import { million, objective, peerModel, randomIds, reference, tiny } from "../peer/work.js";

/** Short, odd and long. */
const LENGTHS = [2, 17, 66, 130, 301, 600];

/** The prototype's order of the weights, most of which are transposed there. */
function flat(
  config: ModelConfig,
  tensors: ReadonlyMap<string, Float32Array>,
): Float32Array<ArrayBuffer> {
  const get = (name: string) => tensors.get(name)!;
  /** Weights [outputs, inputs] as one with its inputs first. */
  const transposed = (...names: readonly string[]) => {
    const inputs = config.hiddenSize;
    const rows = names.flatMap((name) => {
      const w = get(name);
      return Array.from({ length: w.length / inputs }, (_, o) => w.subarray(o * inputs));
    });
    return Float32Array.from(
      { length: rows.length * inputs },
      (_, i) => rows[i % rows.length]![Math.floor(i / rows.length)]!,
    );
  };
  const parts = [
    get(EMBEDDING),
    ...Array.from({ length: config.layers }, (_, index) => {
      const names = layerNames(index);
      return [
        get(names.attentionNorm),
        transposed(names.query, names.key, names.value),
        transposed(names.attentionOutput),
        get(names.mlpNorm),
        transposed(names.gate, names.up),
        get(names.down),
      ];
    }).flat(),
    get(FINAL_NORM),
    ...(config.tiedEmbeddings ? [] : [transposed(OUTPUT_HEAD)]),
  ];
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

const floatsOf = (file: string) => new Float32Array(new Uint8Array(readFileSync(file)).buffer);

/** The largest difference, and that relative to the root of the mean square. */
function largest(ours: Float32Array, theirs: Float32Array) {
  let [most, squares] = [0, 0];
  for (let i = 0; i < ours.length; i++) {
    most = Math.max(most, Math.abs(ours[i]! - theirs[i]!));
    squares += ours[i]! ** 2;
  }
  return { most, relative: most / Math.sqrt(squares / ours.length) };
}

async function differenceOf(config: ModelConfig, native: Peer, folder: string) {
  const start = initialWeights(config, 0);
  const trained = flatTensors(tensorSpecs(config).filter(({ name }) => start.has(name)));
  for (const [name, into] of trained.tensors) into.set(start.get(name)!);
  const sessions = createSessions(1);
  const moments = createMoments(tensorSpecs(config).filter(({ name }) => start.has(name)));
  const learner = createWeightLearner({
    config,
    weights: createModelWeights(config, trained, sessions),
    moments,
    sessions,
    replicas: [createReplica({ config, replicas: 1 }, sessions)],
  });
  const ids = LENGTHS.map((length) => randomIds(length, config));
  let place = 0;
  const sequences = ids.map((one) => ({
    ids: one,
    inputs: { weight: one.map((_, i) => (i === 0 ? 0 : ((++place % 7) - 2) / 64)) },
  }));
  const { logprobs } = await learner.forwardBackward(sequences, objective);
  const gradients = flat(config, learner.gradients);
  await sessions.dispose();

  const [weightsFile, file] = [join(folder, "weights"), join(folder, "numbers")];
  writeFileSync(weightsFile, flat(config, trained.tensors));
  await native.ask(peerModel(config));
  await native.ask({ do: "load", file: weightsFile });
  await native.ask({ do: "gradients", ids: ids.flat(), lengths: LENGTHS, file });
  const theirs = floatsOf(file);
  const scored = logprobs.flatMap((one) => Array.from(one).slice(1));
  const forward = largest(Float32Array.from(scored), theirs.subarray(0, scored.length));
  const backward = largest(gradients, theirs.subarray(scored.length));

  // What it sampled, scored by the engine.
  const engine = await createEmbeddedEngine({ model: { config }, seed: 0, threads: 1 });
  let sampled = 0;
  for (const count of [1, 3]) {
    await native.ask({ do: "sample", prompts: 5, count, prompt: 45, new: 20, file });
    const rows = readFileSync(file, "utf8").trim().split("\n");
    const numbers = rows.map((row) => row.trim().split(" ").map(Number));
    const results = await engine.forward(
      numbers.map((row) => ({ ids: row.slice(0, 65) })),
      {},
    );
    numbers.forEach((row, r) => {
      const ours = results[r]!.logprobs.slice(45);
      sampled = Math.max(sampled, largest(ours, Float32Array.from(row.slice(65))).most);
    });
  }
  await engine.dispose();
  return {
    logprobs: forward.most,
    gradients: backward.most,
    gradients_relative: backward.relative,
    sampled,
  };
}

/** Differences for each model. */
export async function difference(native: Peer, folder: string): Promise<object> {
  return {
    reference: await differenceOf(reference, native, folder),
    million: await differenceOf(million, native, folder),
    tiny: await differenceOf(tiny, native, folder),
  };
}
