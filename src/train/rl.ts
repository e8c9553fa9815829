/**
 * Reinforcement learning with PaW co-training: the paper's Algorithm 1.
 *
 * Left out of the textbook: there is one epoch per update, as in the reference implementation, and the
 * old log-probabilities are those recorded when the actions were sampled, not computed again, unless another
 * program sampled them.
 */
import { type AdvantageOptions, computeAdvantages } from "../advantages/advantages.js";
import type { Engine } from "../engine/engine.js";
import type { Environment, Task } from "../envs/env.js";
import { type ObjectiveOptions, updateObjective } from "../objectives/objective.js";
import type { PawOptions } from "../objectives/paw-options.js";
import { worldObjective } from "../objectives/world.js";
import { createRandom, mixSeed } from "../random.js";
import type { Group } from "../rollout/episode.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { rollout } from "../rollout/rollout.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { prepareUpdate, scaleWorld, type Update } from "../update/update.js";
import { type GradientCap, nextGradientCap } from "./gradient-cap.js";
import { lengthScale } from "./gradient-length.js";
import { type GradientRelation, relateGradients } from "./gradients.js";
import { type Learnt, learn } from "./learn.js";
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
  readonly advantage: AdvantageOptions;
  readonly objective: ObjectiveOptions;
  readonly paw: PawOptions;
  readonly optimizer: OptimizerOptions;
  /** Sequences of each update on which both gradients are measured; 0 is none. */
  readonly gradientSample: number;
  readonly seed: number;
}

/** What the loop works with. */
export interface RlContext {
  readonly engine: Engine;
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
  /** How the policy's and the world model's gradients relate, where both are there and measured. */
  readonly gradients: GradientRelation | undefined;
  readonly gradientCap: GradientCap;
  readonly optimizerSteps: number;
  /** Seconds each phase took. */
  readonly seconds: Readonly<Record<"rollout" | "score" | "prepare" | "measure" | "learn", number>>;
}

/** Trains the engine's model by acting in the environment. */
export async function trainRl(context: RlContext, options: RlOptions): Promise<void> {
  const { engine, environment, tokenizer, style, signal } = context;
  const { advantage, maxTokens, temperature, paw } = options;
  const critic = advantage.name === "ppo";
  const sampler = engine.capabilities.otherSampler === true;
  const objective = updateObjective(options.objective, paw, { critic, sampler });
  const alone = updateObjective(options.objective, { ...paw, loss: "off" }, { critic, sampler });
  const world = paw.loss === "off" ? undefined : worldObjective({ ...paw, loss: paw.loss });
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

    const scored = await scoreActions(engine, groups, {
      old: sampler,
      reference: options.objective.kl > 0,
      entropies: paw.loss !== "off" && paw.entropy === "full",
      values: critic,
    });
    clock.lap("score");

    const advantages = computeAdvantages(groups, advantage, scored.valueTable);
    const unscaled = prepareUpdate(groups, advantages, {
      paw,
      normaliser: options.objective.normaliser,
      maxReturn: environment.maxReturn,
      ownGroups: critic,
      maxTokens: engine.capabilities.maxContext,
      results: scored.results,
    });
    clock.lap("prepare");

    const gradients =
      world === undefined || options.gradientSample === 0 || unscaled.sequences.length === 0
        ? undefined
        : await relateGradients(engine, unscaled, { policy: alone, world }, options.gradientSample);
    gradientCap =
      paw.gradientLength === undefined
        ? nextGradientCap(paw.gradientCap, gradientCap, gradients)
        : { scale: await lengthScale(engine, unscaled, paw) };
    const { scale } = gradientCap;
    const prepared = scale === undefined ? unscaled : scaleWorld(unscaled, scale);
    clock.lap("measure");

    const [learnt] = await Promise.all([
      prepared.sequences.length === 0
        ? undefined
        : learn(engine, prepared, {
            objective,
            normaliser: options.objective.normaliser,
            minibatch: options.minibatch,
            optimizer: options.optimizer,
            stepsBefore: optimizerSteps,
            stepsInAll: expectedSteps(optimizerSteps, index, options),
            seed,
          }),
      context.onEpisodes(groups, index),
    ]);
    clock.lap("learn");
    optimizerSteps += learnt?.optimizerSteps ?? 0;
    await context.onUpdate({
      index,
      gradients,
      gradientCap,
      groups,
      prepared,
      learnt,
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
  const laps = { rollout: 0, score: 0, prepare: 0, measure: 0, learn: 0 };
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
