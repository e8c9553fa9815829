/**
 * Reinforcement learning with PaW co-training: PaW Algorithm 1.
 *
 * Left out of the textbook: there is one epoch per update, as in the reference implementation, and the
 * old log-probabilities are those recorded when the actions were sampled, not computed again, unless another
 * program sampled them. Log-probabilities, ratios, entropies and KL are those at the sampling temperature.
 */
import { type AdvantageOptions, computeAdvantages } from "../advantages/advantages.js";
import type { Engine } from "../engine/engine.js";
import type { Environment, Task } from "../envs/env.js";
import { type ObjectiveOptions, updateObjective } from "../objectives/objective.js";
import type { PawOptions } from "../objectives/paw-options.js";
import { createRandom, mixSeed } from "../random.js";
import type { Group } from "../rollout/episode.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { rollout } from "../rollout/rollout.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { prepareUpdate, scaleWorld, type Update } from "../update/update.js";
import { type CorrectionOptions, correct } from "./corrections.js";
import type { Critic } from "./critic.js";
import { type GradientCap, nextGradientCap } from "./gradient-cap.js";
import { lengthScale } from "./gradient-length.js";
import { type GradientRelation, measureGradients } from "./gradients.js";
import { type Learnt, learn } from "./learn.js";
import { mismatchLimit } from "./mismatch.js";
import type { OptimizerOptions } from "./schedule.js";
import { scoreActions } from "./score.js";

/** Settings of the loop. */
export interface RlOptions {
  readonly updates: number;
  readonly split: string;
  readonly groups: number;
  readonly groupSize: number;
  readonly stepLimit?: number | undefined;
  readonly patience?: number | undefined;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly minibatch: number;
  readonly corrections: CorrectionOptions;
  readonly advantage: AdvantageOptions;
  readonly objective: ObjectiveOptions;
  readonly paw: PawOptions;
  readonly optimizer: OptimizerOptions;
  /** When both gradients are measured. */
  readonly gradients: { readonly every: number };
  /** A limit other than that of the engine's precision. */
  readonly mismatchLimit?: number | undefined;
  readonly seed: number;
}

/** What the loop works with. */
export interface RlContext {
  readonly engine: Engine;
  /** PPO's critic, where it has weights of its own; absent: a head on the policy's. */
  readonly critic?: Critic;
  readonly environment: Environment;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  /** Where to begin: 0, or where an interrupted run stopped. */
  readonly firstUpdate: number;
  /** Optimiser steps taken before that. */
  readonly optimizerSteps: number;
  /** Where the cap on the world model's gradient stood. */
  readonly gradientCap: GradientCap;
  readonly signal?: AbortSignal;
  /** Told of the episodes of an update while the engine learns from them: the time to record them. */
  onEpisodes(groups: readonly Group[], index: number): Promise<void>;
  /** Told of every update when it is done; the next one waits for it. */
  onUpdate(done: FinishedUpdate): Promise<void>;
}

/** One update, done. */
export interface FinishedUpdate {
  readonly index: number;
  readonly groups: readonly Group[];
  readonly prepared: Update;
  readonly learnt: Learnt | undefined;
  /** What a critic of its own says of its learning. */
  readonly critic?: MetricsLine | undefined;
  /** How the policy's and the world model's gradients relate, where both are there and measured. */
  readonly gradients: GradientRelation | undefined;
  readonly gradientCap: GradientCap;
  readonly optimizerSteps: number;
  /** Seconds each phase took. */
  readonly seconds: Readonly<
    Record<"rollout" | "score" | "prepare" | "measure" | "correct" | "learn", number>
  >;
}

/** Trains the engine's model by acting in the environment. */
export async function trainRl(context: RlContext, options: RlOptions): Promise<void> {
  const { engine, environment, tokenizer, style, signal } = context;
  const { advantage, maxTokens, temperature, paw } = options;
  const ppo = advantage.name === "ppo";
  const critic = ppo && context.critic === undefined;
  const sampler = engine.capabilities.otherSampler === true;
  const objective = updateObjective(options.objective, paw, { critic, sampler });
  const policy = enginePolicy({ engine, tokenizer, style, sampling: { maxTokens, temperature } });
  let { optimizerSteps, gradientCap } = context;

  for (let index = context.firstUpdate; index < options.updates; index++) {
    const clock = createClock();
    const seed = updateSeed(options, index);
    const groups = await rollout({
      environment,
      policy,
      style,
      tasks: drawTasks(environment, options, seed),
      groupSize: options.groupSize,
      seed,
      ...(options.stepLimit !== undefined && { stepLimit: options.stepLimit }),
      ...(options.patience !== undefined && { patience: options.patience }),
      ...(signal !== undefined && { signal }),
    });
    clock.lap("rollout");

    const wanted = {
      old: sampler,
      reference: options.objective.kl > 0,
      entropies: paw.loss !== "off" && paw.entropy === "full",
      values: ppo,
    };
    const scored = await scoreActions(engine, groups, wanted, context.critic);
    clock.lap("score");

    const advantages = computeAdvantages(groups, advantage, scored.valueTable);
    const unscaled = prepareUpdate(groups, advantages, {
      paw,
      normaliser: options.objective.normaliser,
      maxReturn: environment.maxReturn,
      ownGroups: ppo,
      maxTokens: engine.capabilities.maxContext,
      results: scored.results,
    });
    clock.lap("prepare");

    const terms = { critic, sampler };
    const gradients = await measureGradients(engine, unscaled, options, terms, index);
    gradientCap =
      paw.gradientLength === undefined
        ? nextGradientCap(paw.gradientCap, gradientCap, gradients)
        : { scale: await lengthScale(engine, unscaled, paw) };
    const { scale } = gradientCap;
    const prepared = scale === undefined ? unscaled : scaleWorld(unscaled, scale);
    clock.lap("measure");

    const corrections = await correct(groups, options.corrections, {
      environment,
      style,
      tokenizer,
      stepLimit: options.stepLimit ?? environment.stepLimit,
      maxTokens: engine.capabilities.maxContext,
      seed,
    });
    clock.lap("correct");

    const how = {
      normaliser: options.objective.normaliser,
      minibatch: options.minibatch,
      stepsBefore: optimizerSteps,
      stepsInAll: expectedSteps(optimizerSteps, index, options),
      seed,
    };
    const teach = async () => ({
      learnt: await learn(engine, prepared, {
        ...how,
        objective,
        optimizer: options.optimizer,
        ...(corrections !== undefined && { corrections }),
        mismatchLimit: mismatchLimit(engine.capabilities, options.mismatchLimit),
      }),
      critic: await context.critic?.learn(prepared, how),
    });
    const [taught] = await Promise.all([
      prepared.sequences.length === 0 ? undefined : teach(),
      context.onEpisodes(groups, index),
    ]);
    const learnt = taught?.learnt;
    clock.lap("learn");
    optimizerSteps += learnt?.optimizerSteps ?? 0;
    await context.onUpdate({
      index,
      gradients,
      gradientCap,
      groups,
      prepared,
      learnt,
      critic: taught?.critic,
      optimizerSteps,
      seconds: clock.laps,
    });
  }
}

/** The seed of all draws of an update. */
export function updateSeed(options: Pick<RlOptions, "seed">, index: number): number {
  return mixSeed(options.seed, "update", index);
}

/** The tasks of an update: drawn without repeats, anew for each update. */
export function drawTasks(
  environment: Environment,
  options: Pick<RlOptions, "split" | "groups">,
  seed: number,
): readonly Task[] {
  const all = environment.tasks(options.split);
  const random = createRandom(mixSeed(seed, "tasks"));
  const drawn = new Set<number>();
  while (drawn.size < Math.min(options.groups, all.length)) drawn.add(random.int(all.length));
  return [...drawn].map((at) => all[at]!);
}

/** How many optimiser steps the run will have, judged by the updates so far: what a cosine needs to know. */
export function expectedSteps(
  before: number,
  index: number,
  options: Pick<RlOptions, "groups" | "groupSize" | "minibatch" | "updates">,
): number {
  const episodes = options.groups * options.groupSize;
  const perUpdate = index === 0 ? Math.ceil((episodes * 20) / options.minibatch) : before / index;
  return Math.round(perUpdate * options.updates);
}

function createClock() {
  const laps = { rollout: 0, score: 0, prepare: 0, measure: 0, correct: 0, learn: 0 };
  let last = performance.now();
  return {
    laps,
    lap(phase: keyof typeof laps): void {
      const now = performance.now();
      laps[phase] = (now - last) / 1000;
      last = now;
    },
  };
}
