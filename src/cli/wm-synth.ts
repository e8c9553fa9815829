import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { openEnvironment } from "../envs/open.js";
import { chooseTasks } from "../rollout/config.js";
import { type Counts, rates } from "../rollout/tally.js";
import { successInterval } from "../success-interval.js";
import { refuseIgnoredSettings } from "../train/applies.js";
import { modelOptions } from "../train/config.js";
import { engineOptions } from "../train/engines.js";
import { startOf } from "../train/open-model.js";
import { sftOptions } from "../train/sft.js";
import { maxTokensOption } from "../worldmodel/config.js";
import { chatPlayerOptions, checkPlayers, openPlayer } from "../worldmodel/players.js";
import {
  synthesise,
  trainAndTest,
  type Variant,
  variantEpisodes,
  variants,
} from "../worldmodel/synthesis.js";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { fetchingOf } from "./fetching.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";
import { finiteJson, writeResult } from "./wm-result.js";
import { openWorld, refuseIgnoredWorld, warnOfLists, worldOptions } from "./wm-world.js";

const count = z.int().min(1);

/** `pawl wm synth`: does it help to learn from episodes that happened only in a model? */
export const wmSynth = defineCommand({
  name: "wm synth",
  summary:
    "generate training episodes inside a world model, and compare agents that learn from them",
  details:
    "A policy plays in the environment and, on other tasks, inside the world model. Agents with the same start\nimitate the successes (in the model, by its own judgement): Real, Syn, Half of each, and 1+1. All are then\ncompared in the real environment.",
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      world: z
        .string()
        .min(1)
        .optional()
        .describe("world model: a run of pawl wm train, or a model folder (or --chat.…)"),
      chat: worldOptions.chat,
      examples: worldOptions.examples,
      shots: worldOptions.shots,
      shotTurns: worldOptions.shotTurns,
      protocol: worldOptions.protocol,
      policy: z
        .string()
        .default("expert")
        .describe(
          "who plays: a run of pawl train or another model, chat (--player.…), expert, seeker, random, or epsilon=PROBABILITY",
        ),
      player: chatPlayerOptions(),
      split: z.string().default("train").describe("split whose tasks are played"),
      episodes: count.default(200).describe("tasks to attempt in each of the two worlds"),
      most: count
        .optional()
        .describe("maximum number of successful episodes to keep from each (default: all)"),
      model: modelOptions,
      engine: engineOptions,
      sft: sftOptions,
      evaluation: z
        .strictObject({
          splits: z
            .array(z.string())
            .min(1)
            .default(["valid_seen"])
            .describe("splits to evaluate on"),
          tasks: count
            .default(100)
            .describe("maximum number of tasks of each split, a fixed random sample"),
          temperature: z
            .number()
            .min(0)
            .default(0)
            .describe("sampling temperature of the compared agents"),
          maxTokens: count
            .default(32)
            .describe("maximum length of a response of the compared agents"),
        })
        .prefault({}),
      stepLimit: count
        .optional()
        .describe("maximum steps per episode (default: the environment's limit)"),
      maxTokens: maxTokensOption,
      seeds: z
        .array(z.int().min(0))
        .min(1)
        .default([0])
        .describe("random seeds, one comparison each"),
      out: z.string().optional().describe("write the results to this JSON file"),
      json: z.boolean().default(false).describe("print the results as one line of JSON"),
    }),
  examples: [
    ["pawl wm synth --world runs/… --policy runs/agent --seeds 0,1,2", "three comparisons"],
  ],
  async run({ config, given, placeOf, io, signal }) {
    const { evaluation: _, ...settings } = config;
    refuseIgnoredSettings(z.object({ model: modelOptions }), settings, { given, placeOf });
    refuseIgnoredWorld(config, given, placeOf);
    const { env, split, episodes, most, evaluation, stepLimit, maxTokens, engine } = config;
    const { address, threads, model } = engine;
    const reading = { engine: { address, threads, model } };
    const start = await startOf(config, fetchingOf(io, signal));
    const environment = openEnvironment({ ...env, name: String(env.name) });
    checkPlayers([config.policy], config);
    const { chat, examples, shots, shotTurns, protocol } = config;
    if (chat !== undefined && "preset" in start)
      throw new ConfigError(
        `--model.start ${config.model.start}: a model from scratch takes its words from a trained world model; with --chat.… give a trained --model.start`,
      );
    const world = await openWorld(
      {
        ...reading,
        ...{ model: config.world, chat, examples, shots, shotTurns, protocol, maxTokens },
        seed: config.seeds[0]!,
      },
      { environment: environment.name, flag: "--world", io },
    );
    const results: { seed: number; variant: Variant; counts: Readonly<Record<string, Counts>> }[] =
      [];
    const made: object[] = [];
    try {
      const players = { ...reading, player: config.player, fetching: fetchingOf(io, signal) };
      const player = await openPlayer(config.policy, environment, players);
      warnOfLists(player, io);
      if (player.looksInside)
        warn(io, `${config.policy} sees the real world: only the model's judgement is tested`);
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
            signal,
          });
          const { real, syn, tried, precision, endings } = data;
          made.push({ seed, real: real.length, syn: syn.length, tried, precision, endings });
          for (const variant of variants) {
            const chosen = variantEpisodes(variant, data, most);
            const counts = await trainAndTest(chosen, {
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
              signal,
            });
            results.push({ seed, variant, counts });
          }
        }
      } finally {
        await player.dispose();
      }
    } finally {
      await world.dispose();
    }
    const summary = variants.flatMap((variant) =>
      evaluation.splits.map((name) => {
        const some = results
          .filter((one) => one.variant === variant)
          .map((one) => one.counts[name]!);
        const successes = some.reduce((sum, one) => sum + one.successes, 0);
        const played = some.reduce((sum, one) => sum + one.episodes, 0);
        const interval = successInterval({ successes, episodes: played });
        const bySeed = some.map((counts) => rates(counts).success);
        return { variant, split: name, success: successes / played, interval, bySeed };
      }),
    );
    const result = { world: world.model.name, policy: config.policy, made, variants: summary };
    writeResult(config.out, result);
    if (config.json) {
      print(io, finiteJson(result));
      return exitCodes.done;
    }
    const rows = summary.map((one) => [
      one.variant,
      one.split,
      percent(one.success),
      `${(100 * one.interval[0]).toFixed(1)} – ${percent(one.interval[1])}`,
      one.bySeed.map((share) => number(100 * share, 1)).join(" "),
    ]);
    for (const line of table(["data", "split", "success", "95 % interval", "by seed"], rows))
      print(io, line);
    for (const one of made) print(io, finiteJson(one));
    return exitCodes.done;
  },
});
