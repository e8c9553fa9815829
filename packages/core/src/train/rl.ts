/**
 * Reinforcement learning with PaW co-training: PaW Algorithm 1. The settings of each stage are in
 * `learner.ts`.
 *
 * Differences from the textbook: there is one epoch per update, as in the reference implementation,
 * and the old log-probabilities are those recorded when the actions were sampled, not recomputed,
 * unless another program or older weights sampled them. Log-probabilities, ratios, entropies and KL are those at the
 * sampling temperature.
 */
import { computeAdvantages, equalGroups } from "../advantages/advantages.js";
import { type Actor, createActor } from "./actor.js";
import { updateSeed } from "./draws.js";
import { createLearner, type LearnerContext } from "./learner.js";
import { createClock } from "./metrics.js";
import { referenceScores } from "./reference-scores.js";
import { RL_PHASES, type RlOptions, type RlProgress } from "./rl-types.js";
import { mayBeStale } from "./staleness.js";

/** What the loop works with. */
export interface RlContext extends LearnerContext, RlProgress {}

/** Trains the engine's model by acting in the environment. */
export async function trainRl(context: RlContext, options: RlOptions): Promise<void> {
  const reference = referenceScores(context.engine, options);
  const actor = createActor({ ...context, reference }, options);
  try {
    await learnUpdates({ ...context, reference }, options, actor);
  } finally {
    await actor.end();
  }
}

async function learnUpdates(context: RlContext, options: RlOptions, actor: Actor): Promise<void> {
  const learner = createLearner({ ...context, stale: mayBeStale(options) }, options);
  let { optimizerSteps } = context;

  for (let index = context.firstUpdate; index < options.updates; index++) {
    const { laps, lap } = createClock(RL_PHASES);
    const seed = updateSeed(options, index);

    // Sample tasks and collect groups of episodes with π_θ (line 2).
    const { groups, ...drawn } = await actor.draw(index);
    lap("rollout");

    // Beyond the paper: with overlap, these weights play the next update while it learns this one.
    await actor.begin(index + 1, index);

    // Credit for every action, by the chosen estimator: what L_RL is made of (line 7, PaW eq. 1).
    const scored = await learner.score(groups);
    lap("score");
    const advantages = computeAdvantages(groups, options.advantage, scored.valueTable);

    // The transitions of highest action entropy (lines 3 to 6, PaW eq. 4),
    // and λ of every group (line 9, PaW eq. 10).
    const prepared = learner.prepare(groups, advantages, scored, index);
    lap("prepare");

    // Beyond the paper: how both gradients relate, and a teacher's corrections.
    const gradients = await learner.measure(prepared, index);
    lap("measure");
    const corrections = await learner.correct(groups, seed);
    lap("correct");

    // Optimise L_RL + λ_g·L_WM (lines 8 and 11, PaW eq. 9 and 11) while the episodes are recorded.
    const stepsInAll = expectedSteps(optimizerSteps, index, options);
    const onBatch = (done: number, total: number): void =>
      context.onActivity?.({ what: "learning", done, total, unit: "tokens" });
    const place = { stepsBefore: optimizerSteps, stepsInAll, seed, corrections, onBatch };
    const learning = learner.learn(prepared, place);
    const recording = drawn.isRecorded ? undefined : context.onEpisodes(groups, index);
    // If recording fails, the engine is not disposed of in the middle of its work.
    await Promise.allSettled([learning, recording]);
    await recording;
    const result = await learning;
    lap("learn");

    const { learnt, critic } = result ?? {};
    optimizerSteps += learnt?.optimizerSteps ?? 0;
    const outcome = { learnt, critic, gradients, optimizerSteps };
    const equal = equalGroups(advantages);
    // What was played ahead belongs to a checkpoint.
    const isAhead = await actor.settle();
    await context.onUpdate({
      ...{ index, groups, prepared, equalGroups: equal },
      ...{ ...outcome, pace: drawn.pace, overlapped: drawn.overlapped, isAhead },
      expected: drawn.expected,
      scoredAhead: scored.ahead,
      seconds: { ...laps, rollout: laps.rollout + drawn.waited },
    });
  }
}

/** How long an episode is assumed to be until one has been played. */
const ASSUMED_STEPS = 20;

/**
 * Optimiser steps of the whole run, extrapolated from the updates so far: a schedule that decays
 * needs it. The first update has none before it, so `lengthNotice` says where it was far off.
 */
export function expectedSteps(
  before: number,
  index: number,
  options: Pick<RlOptions, "groups" | "groupSize" | "minibatch" | "updates">,
): number {
  const episodes = options.groups * options.groupSize;
  const perUpdate =
    index === 0 ? Math.ceil((episodes * ASSUMED_STEPS) / options.minibatch) : before / index;
  return Math.round(perUpdate * options.updates);
}

/**
 * What is to be said after the first update, if its learning rate decayed along a schedule of less
 * than half or more than twice the length that it then showed.
 */
export function lengthNotice(
  { index, optimizerSteps }: { readonly index: number; readonly optimizerSteps: number },
  options: Parameters<typeof expectedSteps>[2] & Pick<RlOptions, "optimizer">,
): string | undefined {
  const { schedule } = options.optimizer;
  if (index !== 0 || schedule === "constant" || optimizerSteps === 0) return undefined;
  const [assumed, shown] = [0, 1].map((done) => expectedSteps(optimizerSteps, done, options));
  if (assumed! <= 2 * shown! && shown! <= 2 * assumed!) return undefined;
  return `optimizer.schedule ${schedule}: the first update assumed ${ASSUMED_STEPS} steps an episode, ${assumed} optimiser steps in all; by what it played there will be ${shown}, and from now on the learning rate follows those`;
}
