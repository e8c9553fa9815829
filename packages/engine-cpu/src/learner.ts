/** Scoring and learning: packs sequences, runs the graphs, accumulates gradients, applies them. */

import { keptMasks, targetMasks } from "@pawl/core/constraint/token-masks.js";
import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import { checkAdamParams, checkInputs, checkSequences } from "@pawl/core/engine/checks.js";
import {
  type AdamParams,
  type BackwardResult,
  EngineError,
  type ForwardOptions,
  type ForwardResult,
  type OptimResult,
  type TargetSequence,
  type TrainSequence,
} from "@pawl/core/engine/engine.js";
import type { Objective, Quantity } from "@pawl/core/objectives/expression.js";
import { inputsOf } from "@pawl/core/objectives/expression-interpret.js";
import { MAX_LOGITS } from "@pawl/models/model-memory.js";
import { type LoraOptions, trainedSpecs } from "@pawl/models/weights/lora.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { type TensorSpec, tensorSpecs, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import { adamStep, addArray, squaredNorm } from "./adam.js";
import { type FlatTensors, flatTensors } from "./flat-tensors.js";
import type { ModelWeights, WeightSet } from "./model-weights.js";
import { quantitiesRead } from "./objective-graph.js";
import {
  columnFeed,
  computedLength,
  gatherTargets,
  inverseTemperatures,
  layOut,
  maskFeeds,
  type PackedMicroBatch,
  packedFeeds,
  scatterTargets,
} from "./packed-arrays.js";
import { attentionBlocks, packSequences } from "./packing.js";
import { packPrefixes } from "./prefix-packing.js";
import {
  forwardProgram,
  INVERSE_TEMPERATURES,
  inputName,
  involvedWeights,
  MASK_NUMBERS,
  MASKS,
  metricName,
  type Program,
  trainingProgram,
} from "./program.js";
import type { Job, MicroBatchRun, Replica } from "./replica.js";
import { together } from "./replicas.js";
import type { Sessions } from "./sessions.js";

/** The optimiser's state: both moments of every trained weight, and the number of optimiser steps taken. */
export interface Moments {
  readonly first: FlatTensors;
  readonly second: FlatTensors;
  optimSteps: number;
}

/** The state before the first optimiser step. */
export function createMoments(trained: readonly TensorSpec[]): Moments {
  const zeros = () => flatTensors(trained);
  return { first: zeros(), second: zeros(), optimSteps: 0 };
}

export interface WeightLearner {
  /** What has been accumulated since the last optimiser step, by tensor name. */
  readonly gradients: ReadonlyMap<string, Float32Array>;
  forward(
    sequences: readonly TargetSequence[],
    weights: WeightSet,
    options: ForwardOptions,
  ): Promise<readonly ForwardResult[]>;
  forwardBackward(
    sequences: readonly TrainSequence[],
    objective: Objective,
    onTokens?: (done: number) => void,
  ): Promise<BackwardResult>;
  optimStep(params: AdamParams): Promise<OptimResult>;
  discardGradients(): Promise<OptimResult>;
}

/**
 * Size of the widest activation of a micro-batch, in numbers. It determines how many tokens are
 * computed at a time: few enough to stay in cache, enough to keep products and gradient sums cheap.
 */
const MICRO_BATCH_NUMBERS = 2 ** 20;
const MAX_TOKENS = 1024;
/** The same with several replicas, which all hold a micro-batch's activations at the same time. */
const MAX_REPLICA_TOKENS = 512;
/** The least with shared prefixes, so that a prefix and its suffixes fit. */
const MIN_SHARED_TOKENS = 512;
/**
 * Fixed cost of a micro-batch, in tokens: operator overhead, and reading and writing the gradient
 * sums.
 */
const MICRO_BATCH_COST = 32;
/** Maximum number of programs kept; objectives change rarely. */
const KEPT = 24;
/** The largest number in single precision. */
const MAX_FLOAT = (2 - 2 ** -23) * 2 ** 127;

/** What a learner works on. */
export interface LearnerStart {
  readonly config: ModelConfig;
  /** The adapters that are trained; without them, all weights are. */
  readonly lora?: LoraOptions | undefined;
  /** `optimStep` changes what is trained in place, and the optimiser's state. */
  readonly weights: Pick<ModelWeights, "trained" | "policy">;
  readonly moments: Moments;
  readonly sessions: Sessions;
  readonly replicas: readonly Replica[];
  /** Compute a prefix that sequences share once; only with a single replica. Default: no. */
  readonly sharesPrefixes?: boolean;
  /** Programs by their keys; a learner of the same configuration may have built some. Default: none. */
  readonly programs?: Map<string, Program>;
  /** What the model's tokens stand for; asked for when there is a constraint. */
  readonly vocabulary?: () => Vocabulary;
}

/** The masks of a sequence's tokens, by their places. */
type MasksOf = (sequence: number) => ReadonlyMap<number, Uint8Array>;

const NO_MASKS: ReadonlyMap<number, Uint8Array> = new Map();

/** A learner over these weights and this optimiser state. */
export function createWeightLearner(start: LearnerStart): WeightLearner {
  const { config, lora, moments, sessions, replicas, programs = new Map() } = start;
  const { sharesPrefixes = false } = start;
  const parameters = start.weights.trained;
  const hasValues = parameters.tensors.has(VALUE_HEAD);
  let gradients: Gradients | undefined;
  const programOf = (key: string, build: () => Program): Program => {
    const program = programs.get(key) ?? build();
    programs.delete(key);
    programs.set(key, program);
    if (programs.size > KEPT) programs.delete(programs.keys().next().value!);
    return program;
  };
  const mostTargets = Math.floor(MAX_LOGITS / config.vocabularySize);
  const packing = {
    tokensPerMicroBatch: Math.max(
      sharesPrefixes ? MIN_SHARED_TOKENS : 32,
      Math.min(
        replicas.length > 1 ? MAX_REPLICA_TOKENS : MAX_TOKENS,
        Math.floor(MICRO_BATCH_NUMBERS / config.mlpSize),
        sharesPrefixes ? MAX_TOKENS : mostTargets,
      ),
    ),
    attentionCost: attentionCost(config),
    microBatchCost: MICRO_BATCH_COST,
  };
  const pack = (sequences: readonly TargetSequence[]) =>
    sharesPrefixes
      ? [packPrefixes(sequences, { ...packing, mostTargets })]
      : packSequences(sequences.map(computedLength), { ...packing, replicas: replicas.length });
  /** What a micro-batch's graph is built for, and its inputs besides those of the objective. */
  const shapeOf = (
    sequences: readonly TargetSequence[],
    masksOf: MasksOf,
    packed: PackedMicroBatch,
  ) => {
    const inverses = inverseTemperatures(packed, sequences);
    const tempered = inverses !== undefined;
    const masks = maskFeeds(packed, masksOf, config.vocabularySize);
    const masked = masks !== undefined;
    const shape = packed.shared
      ? { blocks: 1, tempered, masked, shared: true }
      : { blocks: attentionBlocks(packed.length), tempered, masked };
    const feeds = packedFeeds(packed, config);
    if (inverses !== undefined) feeds[INVERSE_TEMPERATURES] = columnFeed(inverses);
    if (masks !== undefined) {
      feeds[MASKS] = masks.table;
      feeds[MASK_NUMBERS] = masks.numbers;
    }
    return { shape, feeds };
  };
  let masks: ReturnType<typeof keptMasks> | undefined;
  /** The masks of each sequence's tokens. */
  const masksOfAll = (sequences: readonly TargetSequence[]): MasksOf => {
    if (sequences.every(({ constraints }) => constraints === undefined)) return () => NO_MASKS;
    masks ??= keptMasks(start.vocabulary!(), config.vocabularySize);
    const found = sequences.map((sequence) => targetMasks(sequence, masks!));
    return (sequence) => found[sequence]!;
  };
  /**
   * Computes all sequences, split into micro-batches among the replicas; returns micro-batches with
   * their results.
   */
  const runMicroBatches = async (
    sequences: readonly TargetSequence[],
    work: Omit<Job, "microBatches">,
    toRun: (packed: PackedMicroBatch) => MicroBatchRun,
    onTokens?: (done: number) => void,
  ) => {
    let tokens = 0;
    const busy = pack(sequences).flatMap((share, i) => {
      if (share.length === 0) return [];
      const packed = share.map((microBatch) => layOut(sequences, microBatch));
      const onDone = (at: number): void => {
        tokens += share[at]!.sequences.reduce((sum, one) => sum + sequences[one]!.ids.length, 0);
        onTokens?.(tokens);
      };
      const job = { ...work, microBatches: packed.map(toRun) };
      return [{ packed, result: replicas[i]!.run(job, onDone) }];
    });
    const done = await together(busy.map(({ result }) => result));
    return {
      microBatches: done.flatMap(({ results }, replica) =>
        results.map((columns, i) => ({ packed: busy[replica]!.packed[i]!, columns })),
      ),
      gradients: done.flatMap(({ gradients: sums }) => sums ?? []),
    };
  };
  /** The norm of the gradients, which are then cleared: applied, discarded or rejected. */
  const normOf = async ({ sums }: Gradients) => {
    gradients = undefined;
    const square = await squaredNorm(sessions, sums.data);
    if (Number.isFinite(square)) return Math.sqrt(square);
    const name = await largestTensor(sessions, sums.tensors);
    throw new EngineError(
      `the gradient of ${name} is not finite (NaN or infinity): the optimiser step was refused, its gradients were discarded and the weights are unchanged; look for a loss that divides by zero or takes the logarithm of zero, or lower the learning rate`,
    );
  };
  return {
    get gradients() {
      if (gradients === undefined) return new Map();
      const { sums, trained } = gradients;
      return new Map([...sums.tensors].filter(([name]) => trained.has(name)));
    },
    forward: async (sequences, weights, options) => {
      checkSequences(sequences, config);
      const quantities: Quantity[] = ["logprob"];
      if (options.values) quantities.push("value");
      if (options.entropies) quantities.push("entropy");
      requireValueHead(quantities, hasValues);
      const values = quantities.includes("value");
      // Adapters are merged into the weights that a forward pass reads.
      const weightNames = tensorSpecs(config)
        .map(({ name }) => name)
        .filter((name) => values || name !== VALUE_HEAD);
      const zeros = () => sequences.map(({ ids }) => new Float32Array(ids.length));
      const masksOf = masksOfAll(sequences);
      const scored = new Map(quantities.map((quantity) => [quantity, zeros()]));
      const { microBatches } = await runMicroBatches(
        sequences,
        { weights, weightNames, trained: [] },
        (packed) => {
          const { shape, feeds } = shapeOf(sequences, masksOf, packed);
          const key = `forward ${JSON.stringify(shape)} ${quantities}`;
          const program = programOf(key, () => forwardProgram(config, quantities, shape));
          return { key, program, feeds };
        },
      );
      for (const { packed, columns } of microBatches)
        for (const [quantity, arrays] of scored)
          scatterTargets(packed, columns.get(quantity)!, arrays);
      return sequences.map((_, i) => ({
        logprobs: scored.get("logprob")![i]!,
        entropies: scored.get("entropy")?.[i],
        values: scored.get("value")?.[i],
      }));
    },
    forwardBackward: async (sequences, objective, onTokens) => {
      checkSequences(sequences, config);
      const read = quantitiesRead(objective);
      requireValueHead(read, hasValues);
      const inputs = inputsOf(objective.loss, ...Object.values(objective.metrics));
      checkInputs(sequences, inputs);
      const weights = await start.weights.policy(moments.optimSteps);
      const trained = involvedWeights([...parameters.tensors.keys()], objective);
      const weightNames = involvedWeights([...weights.arrays.keys()], objective);
      const logprobs = sequences.map((sequence) => new Float32Array(sequence.ids.length));
      const metrics = Object.fromEntries(Object.keys(objective.metrics).map((name) => [name, 0]));
      let loss = 0;
      const masksOf = masksOfAll(sequences);
      const { microBatches, gradients: sums } = await runMicroBatches(
        sequences,
        { weights, weightNames, trained },
        (packed) => {
          const { shape, feeds } = shapeOf(sequences, masksOf, packed);
          const key = `train ${JSON.stringify(shape)} ${JSON.stringify(objective)}`;
          const program = programOf(key, () => trainingProgram(config, objective, shape, lora));
          for (const name of inputs)
            feeds[inputName(name)] = columnFeed(
              gatherTargets(packed, (i) => sequences[i]!.inputs[name]!),
            );
          return { key, program, feeds };
        },
        onTokens,
      );
      for (const { packed, columns } of microBatches) {
        loss += sumOfTargets(packed, columns.get("loss")!);
        for (const name of Object.keys(metrics))
          metrics[name]! += sumOfTargets(packed, columns.get(metricName(name))!, `metric ${name}`);
        scatterTargets(packed, columns.get("logprob")!, logprobs);
      }
      // Only now, so that a failed call leaves the gradients unchanged.
      const [first, ...rest] = gradients === undefined ? sums : [gradients.sums.data, ...sums];
      for (const array of rest) addArray(first!, array);
      gradients = {
        sums: flatTensors(trainedSpecs(config, hasValues, lora), first),
        trained: new Set([...(gradients?.trained ?? []), ...trained]),
      };
      return { loss, metrics, logprobs };
    },
    optimStep: async (params) => {
      checkAdamParams(params);
      if (gradients === undefined)
        throw new EngineError(
          "there is no gradient to apply; call forwardBackward before optimStep",
        );
      const { sums, trained } = gradients;
      const gradNorm = await normOf(gradients);
      const clip = params.gradClipNorm;
      moments.optimSteps += 1;
      adamStep(
        {
          parameters: parameters.data,
          gradients: sums.data,
          first: moments.first.data,
          second: moments.second.data,
        },
        {
          begin: trained.has(VALUE_HEAD) ? 0 : parameters.valueHeadSize,
          matrixSize: parameters.matrixSize,
        },
        {
          ...params,
          optimSteps: moments.optimSteps,
          scale: clip !== undefined && gradNorm > clip ? clip / gradNorm : 1,
        },
      );
      return { gradNorm };
    },
    discardGradients: async () => ({
      gradNorm: gradients === undefined ? 0 : await normOf(gradients),
    }),
  };
}

/** Accumulated gradients: sums over all weights, and which of the weights were trained. */
interface Gradients {
  readonly sums: FlatTensors;
  readonly trained: ReadonlySet<string>;
}

/**
 * The first tensor that is not finite; if only the sum of squares overflows, one that contributes
 * to it.
 */
async function largestTensor(
  sessions: Sessions,
  tensors: FlatTensors["tensors"],
): Promise<string | undefined> {
  for (const [name, array] of tensors)
    if (!((await squaredNorm(sessions, array)) <= MAX_FLOAT / tensors.size)) return name;
  return undefined;
}

/** Cost of attending to one more token, relative to the rest of a token's cost. */
function attentionCost(config: ModelConfig): number {
  const width = config.heads * config.headSize;
  const perLayer =
    config.hiddenSize * (2 * width + 2 * config.kvHeads * config.headSize + 3 * config.mlpSize);
  // Two products, and passes over the scores that take about as long.
  return (2 * 2 * width) / perLayer;
}

function requireValueHead(quantities: readonly Quantity[], hasValues: boolean): void {
  if (quantities.includes("value") && !hasValues)
    throw new EngineError(
      "values were requested, but this model has no value head; create the engine with valueHead: true",
    );
}

/** Sums in double precision and in a fixed order, so that the same numbers give the same sum. */
function sumOfTargets(packed: PackedMicroBatch, column: Float32Array, what = "the loss"): number {
  let sum = 0;
  for (const [slot, value] of column.entries()) {
    if (!Number.isFinite(value) && what === "the loss")
      throw new EngineError(
        `the loss of token ${packed.tokenOf[slot]} of sequence ${packed.sequenceOf[slot]} is ${value}; its gradient was not added. Look for a division by zero or the logarithm of zero in the objective, or for inputs that are not finite`,
      );
    sum += value;
  }
  return sum;
}
