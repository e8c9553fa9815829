/**
 * The weights of a model: what is trained, and what graphs read.
 *
 * With adapters (LoRA) the base is frozen: it has no gradients and no moments. Graphs read merged
 * weights, W + scale · B A, for sampling, scoring and learning alike, so there is nothing to pay for
 * adapters in a forward pass. There is one merged copy of the adapted projections; it holds the
 * policy, the reference or the actor, whichever was read last. Adapters that have not learnt anything yet, B =
 * 0, need none: a reference at the start of training is the base itself.
 */
import { adaptedTensors, type LoraOptions, loraScale } from "@pawl/models/weights/lora.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import type { FlatTensors } from "./flat-tensors.js";
import { addInput, createGraph, emit } from "./graph.js";
import { finishProgram, type Program } from "./program.js";
import { floats, type Sessions } from "./sessions.js";

/** Weights frozen at some moment. */
export interface Snapshot {
  readonly version: number;
  readonly base: Parameters;
  readonly trained: Parameters;
}

export interface ModelWeights {
  readonly trained: FlatTensors;
  /** The frozen tensors; empty if all are trained. */
  readonly base: Parameters;
  /** The weights being trained, as they are after this number of optimiser steps. */
  policy(optimSteps: number): Promise<WeightSet>;
  frozen(name: "reference" | "actor", snapshot: Snapshot): Promise<WeightSet>;
  /** A copy of what may change. */
  snapshot(version: number): Snapshot;
}

export interface ModelWeightsOptions {
  readonly frozen?: { readonly base: Parameters; readonly lora: LoraOptions } | undefined;
  /**
   * How many other weights were read before with the same graphs, which tell weights apart by their
   * version. Default 0.
   */
  readonly loads?: number | undefined;
}

/** More than there are optimiser steps. */
const VERSIONS_PER_LOAD = 2 ** 32;

/** The weights of a model whose tensors are all trained, or whose base is frozen under adapters. */
export function createModelWeights(
  config: ModelConfig,
  trained: FlatTensors,
  sessions: Sessions,
  { frozen, loads = 0 }: ModelWeightsOptions = {},
): ModelWeights {
  const base = frozen?.base ?? new Map();
  const merge = frozen && createMerger(config, frozen.lora, sessions);
  const read = async (name: WeightSet["name"], weights: Snapshot): Promise<WeightSet> => {
    const merged = await merge?.(`${name} ${weights.version}`, weights);
    const arrays = new Map([...weights.base, ...(merged ?? []), ...weights.trained]);
    return { name, version: weights.version, arrays };
  };
  return {
    trained,
    base,
    policy: (optimSteps) => {
      const version = loads * VERSIONS_PER_LOAD + optimSteps;
      return read("policy", { version, base, trained: trained.tensors });
    },
    frozen: (name, snapshot) => read(name, snapshot),
    snapshot: (version) => ({
      version,
      base,
      trained: new Map([...trained.tensors].map(([name, data]) => [name, data.slice()])),
    }),
  };
}

/**
 * Merges adapters into one copy of the adapted projections; what it already holds is not merged
 * again. Empty if the adapters change nothing.
 */
function createMerger(config: ModelConfig, lora: LoraOptions, sessions: Sessions) {
  const adapted = adaptedTensors(config, lora);
  const merged = new Map<string, Float32Array>();
  let holds: string | undefined;
  return async (key: string, { base, trained }: Snapshot): Promise<Parameters> => {
    if (adapted.every(({ up }) => trained.get(up.name)!.every((weight) => weight === 0)))
      return new Map();
    if (holds === key) return merged;
    holds = undefined;
    const program = await sessions.get("merge", () => mergeProgram(loraScale(lora)));
    for (const { name, down, up } of adapted) {
      const weight = base.get(name)!;
      const shape = [up.shape[0]!, down.shape[1]!];
      const into = merged.get(name) ?? new Float32Array(weight.length);
      merged.set(name, into);
      await program.run(
        {
          weight: floats(weight, shape),
          down: floats(trained.get(down.name)!, down.shape),
          up: floats(trained.get(up.name)!, up.shape),
        },
        { merged: floats(into, shape) },
      );
    }
    holds = key;
    return merged;
  };
}

function mergeProgram(scale: number): Program {
  const graph = createGraph();
  const declare = (name: string, ...shape: readonly string[]) =>
    addInput(graph, name, "float32", shape);
  const weight = declare("weight", "outputs", "inputs");
  const down = declare("down", "rank", "inputs");
  const up = declare("up", "outputs", "rank");
  const merged = emit({
    op: "Gemm",
    inputs: [up, down, weight],
    attributes: { alpha: { float: scale } },
    shape: weight.shape,
  });
  return finishProgram(graph, new Map([["merged", merged]]));
}

// Weights as the replicas see them, with a version that tells when they have changed.

/** Weights by tensor name. */
export type Parameters = ReadonlyMap<string, Float32Array>;

/** The weights used by a call. */
export interface WeightSet {
  readonly name: "policy" | "reference" | "actor";
  /** A different number means different weights. */
  readonly version: number;
  readonly arrays: Parameters;
}

/** The copy of a weight set; made anew only if the version of that name is new. */
export type CopyWeights = (weights: WeightSet) => WeightSet;

/** Copies in memory that other threads can read. */
export function sharedCopies(): CopyWeights {
  return copies((length) => {
    const bytes = length * Float32Array.BYTES_PER_ELEMENT;
    return new Float32Array(new SharedArrayBuffer(bytes));
  });
}

/** Private copies of shared weights: ONNX Runtime cannot read shared memory. */
export function privateCopies(): CopyWeights {
  return copies((length) => new Float32Array(length));
}

function copies(allocate: (length: number) => Float32Array): CopyWeights {
  const latest = new Map<string, WeightSet>();
  return (weights) => {
    const last = latest.get(weights.name);
    if (last?.version === weights.version) return last;
    const arrays = new Map(last?.arrays ?? []);
    for (const [name, array] of weights.arrays) {
      const copy = arrays.get(name) ?? allocate(array.length);
      copy.set(array);
      arrays.set(name, copy);
    }
    const copied = { ...weights, arrays };
    latest.set(weights.name, copied);
    return copied;
  };
}
