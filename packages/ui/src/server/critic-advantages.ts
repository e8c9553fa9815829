/**
 * PPO's advantages of an episode: by the critic of the run's latest checkpoint, token by token, in
 * returns. Training whitens them over its whole update; here only the episode is read.
 */
import { join } from "node:path";
import { computeAdvantages } from "@pawl/core/advantages/advantages.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { hasCritic, hasOwnCritic } from "@pawl/core/train/critic.js";
import {
  actionSequences,
  actionTokens,
  type Transition,
  transitionsOf,
} from "@pawl/core/update/transitions.js";
import type { TrainConfig } from "@pawl/training/config.js";
import { engineFor } from "@pawl/training/engines.js";
import { openCritic } from "@pawl/training/open-critic.js";
import { openModel } from "@pawl/training/open-model.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { REFERENCE, TOKENIZER } from "@pawl/training/saved-model.js";
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
