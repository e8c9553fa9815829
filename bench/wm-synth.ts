/**
 * `npm run bench -- wm-synth --world RUN`: does it help to learn from episodes that happened only in a world model?
 *
 * A policy plays in the environment and, on other tasks, inside the world model. Agents with the same start imitate the
 * successes (in the model, by its own judgement): Real, Syn, Half of each, and 1+1. All are compared in the real
 * environment.
 */

import { openEnvironment } from "@pawl/core/envs/open.js";
import { envConfig, findEnvKind } from "@pawl/core/envs/registry.js";
import { chooseTasks } from "@pawl/core/rollout/config.js";
import { type Counts, rates } from "@pawl/core/rollout/tally.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { sftOptions } from "@pawl/core/train/sft.js";
import {
  synthesise,
  trainAndTest,
  type Variant,
  variantEpisodes,
  variants,
} from "@pawl/studies/synthesis.js";
import { modelOptions } from "@pawl/training/config.js";
import { engineOptions } from "@pawl/training/engines.js";
import { startOf } from "@pawl/training/open-model.js";
import { maxTokensOption } from "@pawl/worldmodel/config.js";
import { openPlayer } from "@pawl/worldmodel/players.js";
import { loadWorldModel } from "@pawl/worldmodel/saved.js";
import { z } from "zod";
import { flagValue, studySettings } from "./shared/study-settings.js";

const count = z.int().min(1);

const settings = (env: string) =>
  z.strictObject({
    env: envConfig(findEnvKind(env)).prefault({}),
    world: z.string().min(1),
    policy: z.string().default("expert"),
    split: z.string().default("train"),
    /** Tasks to attempt in each of the two worlds. */
    episodes: count.default(200),
    model: modelOptions,
    engine: engineOptions,
    sft: sftOptions,
    evaluation: z
      .strictObject({
        splits: z.array(z.string()).min(1).default(["valid_seen"]),
        tasks: count.default(100),
        temperature: z.number().min(0).default(0),
        maxTokens: count.default(32),
      })
      .prefault({}),
    stepLimit: count.optional(),
    maxTokens: maxTokensOption,
    seeds: z.array(z.int().min(0)).min(1).default([0]),
  });

export async function main(args: readonly string[]): Promise<object> {
  const { config } = studySettings(settings(flagValue(args, "--env") ?? "household"), args);
  const { env, split, episodes, evaluation, stepLimit, engine } = config;
  const { address, threads, model } = engine;
  const reading = { engine: { address, threads, model } };
  const start = await startOf(config);
  const environment = openEnvironment({ ...env, name: String(env.name) });
  const world = await loadWorldModel(config.world, { ...reading, maxTokens: config.maxTokens });
  const player = await openPlayer(config.policy, environment, reading);
  const results: { variant: Variant; counts: Readonly<Record<string, Counts>> }[] = [];
  const made: object[] = [];
  try {
    for (const seed of config.seeds) {
      const tasks = chooseTasks(environment, { split, groups: 2 * episodes, seed });
      const half = Math.ceil(tasks.length / 2);
      const data = await synthesise({
        environment,
        model: world.model,
        player,
        realTasks: tasks.slice(0, half),
        synTasks: tasks.slice(half),
        seed,
        stepLimit,
      });
      const { real, syn, tried, precision, endings } = data;
      made.push({ seed, real: real.length, syn: syn.length, tried, precision, endings });
      for (const variant of variants) {
        const counts = await trainAndTest(variantEpisodes(variant, data), {
          ...evaluation,
          environment,
          style: player.style,
          start,
          maxContext: config.model.maxContext,
          tokenizer: world.tokenizer,
          sft: config.sft,
          stepLimit,
          engine,
          seed,
        });
        results.push({ variant, counts });
      }
    }
  } finally {
    await player.dispose();
    await world.dispose();
  }
  const summary = variants.flatMap((variant) =>
    evaluation.splits.map((name) => {
      const ofSeeds = results
        .filter((one) => one.variant === variant)
        .map((one) => one.counts[name]!);
      const successes = ofSeeds.reduce((sum, one) => sum + one.successes, 0);
      const played = ofSeeds.reduce((sum, one) => sum + one.episodes, 0);
      const interval = successInterval({ successes, episodes: played });
      const bySeed = ofSeeds.map((counts) => rates(counts).success);
      return { variant, split: name, success: successes / played, interval, bySeed };
    }),
  );
  return { world: world.model.name, policy: config.policy, made, variants: summary };
}
