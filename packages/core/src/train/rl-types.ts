/** What the RL loop takes, works with and reports. */
import type { AdvantageOptions } from "../advantages/advantages.js";
import type { ObjectiveOptions } from "../objectives/objective.js";
import type { PawOptions } from "../objectives/paw-options.js";
import type { Group } from "../rollout/episode.js";
import type { PaceLoad } from "../rollout/rollouts.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { Distillation } from "../update/distillation.js";
import type { Update } from "../update/update.js";
import type { OnActivity } from "./activity.js";
import type { TrainRolloutOptions } from "./branching.js";
import type { CorrectionOptions } from "./corrections.js";
import type { CurriculumOptions } from "./curriculum.js";
import type { GradientRelation } from "./gradients.js";
import type { Learnt } from "./learn.js";
import type { RecordedUpdate } from "./recorded-updates.js";
import type { OptimizerOptions } from "./schedule.js";

/** Settings of the loop. */
export interface RlOptions {
  readonly updates: number;
  readonly split: string;
  readonly groups: number;
  readonly groupSize: number;
  /** Which tasks are drawn. */
  readonly curriculum: CurriculumOptions;
  readonly stepLimit?: number | undefined;
  readonly invalidActionLimit?: number | undefined;
  readonly maxTokens: number;
  readonly temperature: number;
  /** How fast episodes advance, and where they branch off one another. */
  readonly rollout: TrainRolloutOptions;
  /** Updates that are played while an earlier one is learnt: 0 or 1. */
  readonly overlap: number;
  /** Whether the reference scores while the policy acts (default: if the engine can). */
  readonly scoreWhileActing?: boolean | undefined;
  readonly minibatch: number;
  readonly corrections: CorrectionOptions;
  /** How a teacher's opinion of the policy's tokens counts, if there is a teacher. */
  readonly distillation?: Distillation | undefined;
  readonly advantage: AdvantageOptions;
  readonly objective: ObjectiveOptions;
  readonly paw: PawOptions;
  readonly optimizer: OptimizerOptions;
  /** When both gradients are measured. */
  readonly gradients: { readonly every: number };
  /** Overrides the limit of the engine's precision. */
  readonly mismatchLimit?: number | undefined;
  readonly seed: number;
}

/** The state of the loop, and callbacks. */
export interface RlProgress {
  /** Where to start: 0, or where an interrupted run stopped. */
  readonly firstUpdate: number;
  /** Optimiser steps taken before that. */
  readonly optimizerSteps: number;
  /** The first update's groups, if they were drawn before the run was interrupted. */
  readonly ahead?: readonly Group[] | undefined;
  /** The updates that a resumed run has recorded. */
  readonly recorded?: Iterable<RecordedUpdate> | undefined;
  readonly signal?: AbortSignal;
  /**
   * Called with the episodes of an update, when the time has come to record them: while the engine
   * learns from them or, with overlap, when they have been drawn.
   */
  onEpisodes(groups: readonly Group[], index: number): Promise<void>;
  readonly onActivity?: OnActivity | undefined;
  /** Called after every update; the next one waits for it. */
  onUpdate(done: FinishedUpdate): Promise<void>;
}

/** One finished update. */
export interface FinishedUpdate {
  readonly index: number;
  readonly groups: readonly Group[];
  readonly prepared: Update;
  /** Fraction of the groups in which no action was better or worse than expected. */
  readonly equalGroups: number;
  readonly learnt: Learnt | undefined;
  /** Metrics of a separate critic. */
  readonly critic?: MetricsLine | undefined;
  /**
   * How the policy's and the world model's gradients relate, if there are two and they were
   * measured.
   */
  readonly gradients: GradientRelation | undefined;
  readonly optimizerSteps: number;
  /** How the engine was used, if episodes have their own pace. */
  readonly pace?: PaceLoad | undefined;
  /** Seconds of its rollout in which the update before it learnt. */
  readonly overlapped?: number | undefined;
  /** The share of the actions that the reference had scored when acting was over; undefined if it began then. */
  readonly scoredAhead?: number | undefined;
  /** The mean estimate of its tasks' success before they were played, if the curriculum has one. */
  readonly expected?: number | undefined;
  /** Whether the next update has been drawn already, and recorded. */
  readonly isAhead: boolean;
  /** Seconds each phase took. */
  readonly seconds: Readonly<Record<RlPhase, number>>;
}

/** The phases of an update, in order. */
export const RL_PHASES = ["rollout", "score", "prepare", "measure", "correct", "learn"] as const;
type RlPhase = (typeof RL_PHASES)[number];
