/**
 * PPO's critic with its own weights: a second model that starts from the policy's weights, with a
 * value head, and learns only values, at its own learning rate (the paper uses 1e-5, with 1e-6 for
 * the policy).
 *
 * Its head works in units of R_max, the largest return. Otherwise a head that starts at 0 would
 * first have to grow to the size of the returns, at a learning rate meant for weights, and the
 * effect of the clip (`objective.valueClip`) would depend on the environment. Advantages and
 * targets are in returns, as everywhere else.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type AdvantageOptions, usesCritic } from "../advantages/advantages.js";
import type { Engine, TargetSequence } from "../engine/engine.js";
import type { Objective } from "../objectives/expression.js";
import { counted, policyWeight } from "../objectives/inputs.js";
import type { ObjectiveOptions } from "../objectives/objective.js";
import { valueObjective } from "../objectives/policy.js";
import type { Episode } from "../rollout/episode.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { MergedSequence } from "../update/merge.js";
import type { Update } from "../update/update.js";
import { type LearnOptions, learn } from "./learn.js";
import type { OptimizerOptions } from "./schedule.js";

/** What a critic learns by. Runs recorded before critics had their own weights have no settings of it. */
export interface CriticSettings {
  readonly advantage: Pick<AdvantageOptions, "name">;
  readonly critic?: {
    readonly weights: "own" | "shared";
    readonly learningRate?: number | undefined;
  };
  readonly objective: Pick<ObjectiveOptions, "valueClip" | "valueCoefficient">;
  readonly optimizer: OptimizerOptions;
}

/** The critic's folder in a checkpoint. */
const FOLDER = "critic";
/** The paper's ratio: 1e-5 to 1e-6. */
const RATE = 10;

/** A critic with its own weights. */
export interface Critic {
  /** The value of each target token, in units of returns; each sequence with its episode. */
  values(
    sequences: readonly TargetSequence[],
    episodes: readonly Pick<Episode, "maxReturn">[],
  ): Promise<readonly Float32Array[]>;
  /** Learns the update's value targets; returns metrics by name, in units of R_max. */
  learn(update: Update, options: CriticLearnOptions): Promise<MetricsLine>;
  /** Writes to and reads from a folder inside the policy's checkpoint. */
  save(checkpoint: string): Promise<void>;
  load(checkpoint: string): Promise<void>;
  /** Starts over from the policy's initial weights. */
  start(reference: string): Promise<void>;
  dispose(): Promise<void>;
}

/** How an update's values are learnt; the critic decides the rest. */
type CriticLearnOptions = Omit<LearnOptions, "objective" | "optimizer">;

/** Whether a run has a critic at all: its estimator needs values. */
export function hasCritic({ advantage }: Pick<CriticSettings, "advantage">): boolean {
  return usesCritic(advantage);
}

/**
 * Whether a run's critic has its own weights. A checkpoint without them was written before they
 * existed: then the critic is a head on the policy, whatever the settings say now.
 */
export function hasOwnCritic(
  { advantage, critic }: Pick<CriticSettings, "advantage" | "critic">,
  checkpoint?: string,
): boolean {
  if (!hasCritic({ advantage }) || critic?.weights !== "own") return false;
  return checkpoint === undefined || existsSync(join(checkpoint, FOLDER));
}

/** A critic whose weights this engine has. */
export function createCritic(engine: Engine, config: CriticSettings, maxReturn: number): Critic {
  const { objective, optimizer, critic } = config;
  const learningRate = critic?.learningRate ?? RATE * optimizer.learningRate;
  const values = valueObjective(objective);
  const tokens = { "policy.tokens": counted(policyWeight, 1) };
  const own: Objective = { ...values, metrics: { ...values.metrics, ...tokens } };
  return {
    async values(sequences, episodes) {
      const results = await engine.forward(sequences, { values: true });
      return results.map(({ values }, i) => {
        const unit = episodes[i]!.maxReturn ?? maxReturn;
        return values!.map((value) => value * unit);
      });
    },
    async learn(update, options) {
      let first = 0;
      const sequences = update.sequences.map((sequence) => {
        const { source } = update.transitions[first]!;
        first += sequence.steps;
        return valueSequence(sequence, source.maxReturn ?? maxReturn);
      });
      const { metrics } = await learn(
        engine,
        { ...update, sequences },
        {
          ...options,
          objective: own,
          optimizer: { ...optimizer, learningRate },
        },
      );
      return {
        "critic.loss": metrics.loss!,
        "critic.value": metrics["policy.value"]!,
        "critic.error": metrics["policy.valueError"]!,
        "critic.clipped": metrics["policy.valueClipped"]!,
        "critic.explained": explained(sequences),
        "critic.gradNorm": metrics.gradNorm!,
      };
    },
    save: (checkpoint) => engine.save(join(checkpoint, FOLDER)),
    load: (checkpoint) => engine.load(join(checkpoint, FOLDER)),
    start: (reference) => engine.load(reference),
    dispose: () => engine.dispose(),
  };
}

/** The sequence up to its last action, with the inputs of the value loss, in units of R_max. */
function valueSequence({ ids, inputs, steps }: MergedSequence, maxReturn: number): MergedSequence {
  const { oldValue, targetReturn } = inputs;
  const all = Array.from(inputs.policyWeight!);
  const end = all.findLastIndex((weight) => weight > 0) + 1;
  const scaled = (values: ArrayLike<number>) =>
    Float32Array.from({ length: end }, (_, i) => values[i]! / maxReturn);
  return {
    ids: Array.from(ids).slice(0, end),
    targets: Uint8Array.from(all.slice(0, end), (weight) => (weight > 0 ? 1 : 0)),
    inputs: {
      policyWeight: Float32Array.from(all.slice(0, end)),
      oldValue: scaled(oldValue!),
      targetReturn: scaled(targetReturn!),
    },
    steps,
  };
}

/** Explained variance of the targets: 1 is all of it, 0 is no better than their mean. */
function explained(sequences: readonly MergedSequence[]): number {
  let [count, sum, squares, errors] = [0, 0, 0, 0];
  for (const { targets, inputs } of sequences)
    for (let i = 0; i < targets!.length; i++) {
      if (targets![i] === 0) continue;
      const target = inputs.targetReturn![i]!;
      count += 1;
      sum += target;
      squares += target ** 2;
      errors += (target - inputs.oldValue![i]!) ** 2;
    }
  return 1 - errors / (squares - sum ** 2 / count);
}
