/**
 * PPO's advantages of an episode: by the critic of the run's latest checkpoint, token by token, in
 * returns. Training whitens them over its whole update; here only the episode is read.
 */
import { computeAdvantages } from "@pawl/core/advantages/advantages.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { hasCritic } from "@pawl/core/train/critic.js";
import { actionSequences, actionTokens, transitionsOf } from "@pawl/core/update/transitions.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { openSavedCritic } from "@pawl/training/saved-critic.js";
import type { CriticAdvantages } from "./api.js";

/** Asks the critic about every token that the agent wrote in an episode. */
export async function criticAdvantages(
  folder: string,
  episode: Episode,
): Promise<CriticAdvantages> {
  const config = trainConfigOf(folder);
  const checkpoint = latestCheckpoint(folder);
  if (!hasCritic(config))
    throw new HttpError(422, "this run has no critic: its advantages come from the record");
  if (checkpoint === undefined)
    throw new HttpError(422, "this run has no checkpoint yet, and so no critic to ask");
  const groups = [{ index: 0, task: episode.task, episodes: [episode] }];
  const transitions = transitionsOf(groups);
  if (transitions.length === 0) return { steps: [] };
  const critic = await openSavedCritic(folder, checkpoint.folder);
  const sources = transitions.map(({ source }) => source);
  const answers = await critic
    .values(actionSequences(transitions), sources)
    .finally(() => critic.dispose());
  const values = actionTokens(groups, transitions, answers);
  const { returns } = computeAdvantages(groups, config.advantage, values);
  return {
    steps: values[0]![0]!.map((tokens, t) =>
      tokens.map((value, i) => returns![0]![0]![t]![i]! - value),
    ),
  };
}
