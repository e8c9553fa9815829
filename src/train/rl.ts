/**
 * Reinforcement learning with PaW co-training: PaW Algorithm 1. The settings of each stage are in
 * `learner.ts`.
 *
 * Differences from the textbook: there is one epoch per update, as in the reference implementation,
 * and the old log-probabilities are those recorded when the actions were sampled, not recomputed,
 * unless another program sampled them. Log-probabilities, ratios, entropies and KL are those at the
 * sampling temperature.
 */
import { computeAdvantages } from "../advantages/advantages.js";
import { rollout } from "../rollout/rollout.js";
import { createClock } from "./clock.js";
import { drawTasks, updateSeed } from "./draws.js";
import { createLearner, type LearnerContext } from "./learner.js";
import { modelPolicy } from "./model-policy.js";
import { RL_PHASES, type RlOptions, type RlProgress } from "./rl-types.js";

/** What the loop works with. */
export interface RlContext extends LearnerContext, RlProgress {}

/** Trains the engine's model by acting in the environment. */
export async function trainRl(context: RlContext, options: RlOptions): Promise<void> {
  const { environment, style, signal } = context;
  const { groupSize, stepLimit, invalidActionLimit, maxTokens, temperature } = options;
  const policy = modelPolicy({ ...context, sampling: { maxTokens, temperature } });
  const limits = {
    ...(stepLimit !== undefined && { stepLimit }),
    ...(invalidActionLimit !== undefined && { invalidActionLimit }),
    ...(signal !== undefined && { signal }),
  };
  const learner = createLearner(context, options);
  let { optimizerSteps, gradientCap } = context;

  for (let index = context.firstUpdate; index < options.updates; index++) {
    const { laps: seconds, lap } = createClock(RL_PHASES);
    const seed = updateSeed(options, index);

    // Sample tasks and collect groups of episodes with π_θ (line 2).
    const tasks = drawTasks(environment, options, seed);
    const groups = await rollout({ environment, policy, style, tasks, groupSize, seed, ...limits });
    lap("rollout");

    // Credit for every action, by the chosen estimator: what L_RL is made of (line 7, PaW eq. 1).
    const scored = await learner.score(groups);
    lap("score");
    const advantages = computeAdvantages(groups, options.advantage, scored.valueTable);

    // The transitions of highest action entropy (lines 3 to 6, PaW eq. 4),
    // and λ of every group (line 9, PaW eq. 10).
    const prepared = learner.prepare(groups, advantages, scored);
    lap("prepare");

    // Beyond the paper: how both gradients relate, a cap on the world model's, and a teacher's
    // corrections.
    const measured = await learner.measure(prepared, index, gradientCap);
    lap("measure");
    const corrections = await learner.correct(groups, seed);
    lap("correct");

    // Optimise L_RL + λ_g·L_WM (lines 8 and 11, PaW eq. 9 and 11) while the episodes are recorded.
    const stepsInAll = expectedSteps(optimizerSteps, index, options);
    const place = { stepsBefore: optimizerSteps, stepsInAll, seed, corrections };
    const [taught] = await Promise.all([
      learner.learn(measured.update, place),
      context.onEpisodes(groups, index),
    ]);
    lap("learn");

    const { update, gradients } = measured;
    const { learnt, critic } = taught ?? {};
    gradientCap = measured.gradientCap;
    optimizerSteps += learnt?.optimizerSteps ?? 0;
    const outcome = { learnt, critic, gradients, gradientCap, optimizerSteps };
    await context.onUpdate({ index, groups, prepared: update, ...outcome, seconds });
  }
}

/**
 * Optimiser steps of the whole run, extrapolated from the updates so far: a cosine schedule needs
 * it.
 */
export function expectedSteps(
  before: number,
  index: number,
  options: Pick<RlOptions, "groups" | "groupSize" | "minibatch" | "updates">,
): number {
  const episodes = options.groups * options.groupSize;
  const perUpdate = index === 0 ? Math.ceil((episodes * 20) / options.minibatch) : before / index;
  return Math.round(perUpdate * options.updates);
}
