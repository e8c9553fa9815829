/**
 * PPO's advantages of an episode: by the critic of the run's latest checkpoint, token by token, in
 * returns. Training whitens them over its whole update; here only the episode is read.
 */
import { join } from "node:path";
import { computeAdvantages } from "../advantages/advantages.js";
import { openEnvironment } from "../envs/open.js";
import { HttpError } from "../http-server.js";
import type { Episode } from "../rollout/episode.js";
import { latestCheckpoint } from "../runs/checkpoints.js";
import type { TrainConfig } from "../train/config.js";
import { hasCritic, hasOwnCritic } from "../train/critic.js";
import { engineFor } from "../train/engine-choice.js";
import { openCritic } from "../train/open-critic.js";
import { openModel } from "../train/open-model.js";
import { trainConfigOf } from "../train/recorded-config.js";
import { REFERENCE, TOKENIZER } from "../train/saved-model.js";
import {
  actionSequences,
  actionTokens,
  type Transition,
  transitionsOf,
} from "../update/transitions.js";
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
  const answers = await valuesOf(folder, config, checkpoint.folder, transitions);
  const values = actionTokens(groups, transitions, answers);
  const { returns } = computeAdvantages(groups, config.advantage, values);
  return {
    steps: values[0]![0]!.map((tokens, t) =>
      tokens.map((value, i) => returns![0]![0]![t]![i]! - value),
    ),
  };
}

/** The critic's value of each target token, in returns. */
async function valuesOf(
  folder: string,
  config: TrainConfig,
  checkpoint: string,
  transitions: readonly Transition[],
): Promise<readonly ArrayLike<number>[]> {
  const engine = engineFor(config.engine);
  const sequences = actionSequences(transitions);
  if (hasOwnCritic(config, checkpoint)) {
    const environment = openEnvironment(
      { ...config.env, name: String(config.env.name) },
      { play: false },
    );
    const { maxReturn } = environment;
    await environment.close?.();
    const reference = { folder: join(folder, REFERENCE) };
    const critic = await openCritic({ ...config, engine }, reference, maxReturn);
    try {
      await critic.load(checkpoint);
      return await critic.values(
        sequences,
        transitions.map(({ source }) => source),
      );
    } finally {
      await critic.dispose();
    }
  }
  const start = { folder: checkpoint, tokenizer: join(folder, TOKENIZER) };
  const model = await openModel({ start, engine, valueHead: true });
  try {
    const results = await model.engine.forward(sequences, { values: true });
    return results.map(({ values }) => values!);
  } finally {
    await model.engine.dispose();
  }
}
