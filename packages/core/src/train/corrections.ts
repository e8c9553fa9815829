/**
 * Corrections: a teacher takes over where the learner failed, and the policy imitates it from
 * there.
 *
 * Similar to DAgger (Ross et al. 2011, arXiv 1011.0686): a learner must know what to do in the
 * states that its own mistakes lead to, and a teacher that plays alone never gets there. If every
 * attempt of a group fails there is nothing to compare, so RL learns nothing from it; a correction
 * does.
 *
 * A group may also be its own teacher: then the policy imitates the best attempt of groups in which
 * others failed, without anybody to take over.
 *
 * Unlike textbook DAgger, the teacher labels only the states after it takes over, not every state
 * of the episode, so that a correction stays one sequence that is read in one pass.
 */
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { EngineFailure } from "../engine/ask.js";
import type { TrainSequence } from "../engine/engine.js";
import { EnvError, type Environment } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";
import type { Episode, Group } from "../rollout/episode.js";
import { startEpisode } from "../rollout/episode-run.js";
import { teacherPolicy } from "../rollout/policies/config.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { imitationSequences } from "./sft.js";

/** Settings of corrections. */
export const correctionOptions = z
  .strictObject({
    episodes: z
      .int()
      .min(0)
      .default(0)
      .describe("failed episodes per update that a teacher takes over, for the policy to imitate"),
    teacher: z
      .enum(["expert", "seeker", "best"])
      .default("expert")
      .describe(
        "who takes over: expert sees the true state, seeker only what has been observed; best: nobody, the best attempt of the group is imitated in place of a failed one",
      ),
    from: z
      .enum(["episodes", "groups"])
      .default("episodes")
      .describe("which failed episodes: any, or only those of groups without a success"),
    weight: z.number().gt(0).default(1).describe("weight of the imitation loss"),
  })
  .prefault({});

/** Settings of corrections. */
export type CorrectionOptions = z.output<typeof correctionOptions>;

/** Where the teacher plays, and how its episodes become sequences. */
export interface CorrectionSetup {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly tokenizer: Tokenizer;
  readonly stepLimit: number;
  /** The longest sequence the engine takes; longer corrections are left out. */
  readonly maxTokens: number;
  /** The seed of the update. */
  readonly seed: number;
}

/** What a policy imitates in addition to its own update. */
export interface Corrections {
  readonly episodes: number;
  /** With a `weight` per token: 1 on the teacher's actions, 0 elsewhere. */
  readonly sequences: readonly TrainSequence[];
  /** The weight of their mean loss. */
  readonly weight: number;
}

/**
 * Lets the teacher take over some failed episodes; undefined if corrections are off or nothing
 * failed.
 */
export async function correct(
  groups: readonly Group[],
  options: CorrectionOptions,
  setup: CorrectionSetup,
): Promise<Corrections | undefined> {
  const episodes = await correctEpisodes(groups, options, setup);
  const sequences = episodes
    .flatMap((episode) => imitationSequences(episode, setup, ACTIONS_OF_THE_TEACHER))
    .filter(({ ids, inputs }) => ids.length <= setup.maxTokens && hasTarget(inputs.weight!));
  if (sequences.length === 0) return undefined;
  return { episodes: episodes.length, sequences, weight: options.weight };
}

const ACTIONS_OF_THE_TEACHER = { observationWeight: 0, randomActions: false } as const;
const hasTarget = (weight: ArrayLike<number>): boolean => Array.from(weight).some((w) => w > 0);

/**
 * Failed episodes, continued by the teacher from a random step. The learner's own steps are marked
 * as random actions: part of the context, but not imitated.
 */
export async function correctEpisodes(
  groups: readonly Group[],
  { episodes, teacher, from }: CorrectionOptions,
  { environment, style, stepLimit, seed }: Omit<CorrectionSetup, "tokenizer" | "maxTokens">,
): Promise<readonly Episode[]> {
  if (episodes === 0) return [];
  const random = createRandom(mixSeed(seed, "corrections"));
  if (teacher === "best") return random.shuffle(bestOf(groups)).slice(0, episodes);
  const failed = groups
    .filter((group) => from === "episodes" || !group.episodes.some(({ success }) => success))
    .flatMap((group) => group.episodes.filter(isFailed));
  const policy = teacherPolicy(environment, teacher, 0);
  const corrected: Episode[] = [];
  for (const episode of random.shuffle(failed).slice(0, episodes)) {
    const kept = random.int(Math.min(episode.steps.length, stepLimit - 1) + 1);
    const run = await startEpisode({
      environment,
      style,
      task: episode.task,
      group: episode.group,
      attempt: episode.attempt,
      seed: episode.seed,
      stepLimit,
      invalidActionLimit: Number.POSITIVE_INFINITY,
      policy: policy.name,
    });
    try {
      for (let at = 0; run.episode === undefined; at++) {
        const [reply] =
          at < kept
            ? [{ response: episode.steps[at]!.response, strayed: true as const }]
            : await policy.act([run.situation()]);
        await run.advance(reply!);
      }
    } catch (error) {
      // A world or teacher that fails spoils this correction only.
      if (error instanceof EngineFailure) throw error;
      run.breakOff(error);
    } finally {
      await run.close().catch(() => undefined);
    }
    const { episode: played } = run;
    if (played !== undefined && played.stop !== "broken") corrected.push(played);
  }
  return corrected;
}

/**
 * The best success of each group in which others failed: the highest return, then the fewest steps,
 * then the first. What a teacher did, or was refused, is part of the context, but not imitated.
 */
function bestOf(groups: readonly Group[]): Episode[] {
  return groups
    .filter(({ episodes }) => episodes.some(isFailed))
    .flatMap(({ episodes }) => {
      const [best] = episodes
        .filter(({ success, stop }) => success && stop !== "broken")
        .sort((a, b) => b.return - a.return || a.steps.length - b.steps.length);
      return best === undefined ? [] : [best];
    })
    .map(({ hint = 0, steps, ...episode }) => ({
      ...episode,
      steps: steps.map((step, at) =>
        at >= hint && step.valid ? step : { ...step, strayed: true as const },
      ),
    }));
}

const isFailed = ({ success, stop }: Episode): boolean => !success && stop !== "broken";

/** Rejects a teacher that the environment does not have. */
export function checkCorrections(
  { episodes, teacher, from }: CorrectionOptions,
  environment: Environment,
): void {
  if (episodes === 0) return;
  if (teacher === "best") {
    if (from === "episodes") return;
    throw new ConfigError(
      "corrections.teacher best: in a group without a success nobody is the best, so corrections.from groups would correct nothing; leave corrections.from out",
    );
  }
  if (environment[teacher] !== undefined) return;
  throw new EnvError(
    `corrections.teacher: ${environment.name} has no ${teacher} to take over; name another teacher, or set corrections.episodes to 0`,
  );
}
