import { ConfigError } from "@pawl/core/config/config-error.js";
import { refuseIsolated } from "@pawl/core/envs/isolated-environment.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { envConfig, findEnvKind } from "@pawl/core/envs/registry.js";
import { type Counts, rates } from "@pawl/core/rollout/tally.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { evaluate } from "@pawl/core/train/evaluate.js";
import {
  chatPlayerOptions,
  checkPlayers,
  concurrencyOf,
  openPlayer,
} from "@pawl/worldmodel/players.js";
import {
  exactPredictor,
  modelPredictor,
  type VerifierCounts,
  verifiedPolicy,
} from "@pawl/worldmodel/verifier.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";
import { finiteJson, writeResult } from "./wm-result.js";
import { openWorld, refuseIgnoredWorld, worldOptions } from "./wm-world.js";

const count = z.int().min(1);

/** `pawl wm eval verifier`: a policy whose irreversible actions a world model checks first. */
export const wmEvalVerifier = defineCommand({
  name: "wm eval verifier",
  summary: "success of a policy whose irreversible actions are checked first, by budget of checks",
  details:
    "Before an irreversible action (a purchase, an answer) the world model is asked; unless it predicts success, the policy\nchooses again. --model exact tries the action in a copy of the world: the upper bound.",
  options: (peek) =>
    z.strictObject({
      env: envConfig(findEnvKind(peek("env.name") ?? "webshop")).prefault({}),
      model: z
        .string()
        .min(1)
        .default("exact")
        .describe("exact, a run of pawl wm train or pawl train, or a model folder (or --chat.…)"),
      policy: z
        .string()
        .default("epsilon=0.3")
        .describe(
          "who plays: expert, seeker, random, epsilon=PROBABILITY, chat (--player.…), or a run or model",
        ),
      player: chatPlayerOptions(),
      budgets: z
        .array(z.int().min(0))
        .min(1)
        .default([0, 2, 4, 10, 50])
        .describe("budgets of checks per episode, one evaluation each"),
      split: z.string().optional().describe("split (default: the environment's last one)"),
      tasks: count.default(100).describe("maximum number of tasks, a fixed random sample"),
      stepLimit: count
        .optional()
        .describe("maximum steps per episode (default: the environment's limit)"),
      temperature: z
        .number()
        .min(0)
        .optional()
        .describe("sampling temperature of a trained agent (default: its own)"),
      ...worldOptions,
      seed: z.int().min(0).default(0).describe("random seed"),
      out: z.string().optional().describe("write the results to this JSON file"),
      json: z.boolean().default(false).describe("print the results as one line of JSON"),
    }),
  examples: [
    ["pawl wm eval verifier --policy random --tasks 200", "the upper bound, on WebShop"],
    ["pawl wm eval verifier --model runs/… --policy runs/agent", "a trained verifier and agent"],
    [
      "pawl wm eval verifier --policy chat --player.base-url http://localhost:8000/v1 --player.model NAME",
      "a chat model as the agent",
    ],
  ],
  async run({ config, given, placeOf, io, signal }) {
    refuseIgnoredWorld(config, given, placeOf);
    const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
    refuseIsolated(environment, "the verifier");
    const split = config.split ?? environment.splits.at(-1)!;
    const { tasks, seed, stepLimit } = config;
    if (config.model !== "exact" && config.model === config.policy)
      throw new ConfigError("--model: a policy cannot be its own verifier; give a world model");
    checkPlayers([config.policy], config);
    const { chat, examples } = config;
    const exact = config.model === "exact";
    const choice = { ...config, model: exact ? undefined : config.model };
    const world =
      exact && chat === undefined && examples.length === 0
        ? undefined
        : await openWorld(choice, { environment: environment.name, flag: "--model", io });
    const fetching = fetchingOf(io, signal);
    const player = await openPlayer(config.policy, environment, { ...config, fetching });
    const rows: { budget: number; tally: Counts; counts: VerifierCounts }[] = [];
    try {
      const predictor = world === undefined ? exactPredictor : modelPredictor(world.model);
      for (const budget of config.budgets) {
        const { style } = player;
        const { policy, counts } = verifiedPolicy(player.policy, { predictor, budget, style });
        const tally = await evaluate({
          environment,
          policy,
          style,
          split,
          tasks,
          seed,
          signal,
          concurrency: concurrencyOf(player.policy),
          stepLimit,
        });
        rows.push({ budget, tally: tally.all, counts });
      }
    } finally {
      await player.dispose();
      await world?.dispose();
    }
    if (rows.every(({ counts }) => counts.irreversible === 0))
      warn(io, `${environment.name}: no irreversible action was taken, so nothing was verified`);
    const result = {
      model: world?.model.name ?? config.model,
      policy: config.policy,
      env: environment.name,
      split,
      budgets: rows.map(({ budget, tally, counts }) => ({
        budget,
        ...rates(tally),
        interval: successInterval(tally),
        episodes: tally.episodes,
        broken: tally.broken,
        ...counts,
      })),
    };
    writeResult(config.out, result);
    if (config.json) print(io, finiteJson(result));
    else for (const line of verifierTable(rows)) print(io, line);
    return exitCodes.done;
  },
});

function verifierTable(
  rows: readonly { budget: number; tally: Counts; counts: VerifierCounts }[],
): readonly string[] {
  const header = ["checks", "success", "95 % interval", "score", "steps", "asked"];
  const more = ["vetoes", "prevented", "false alarms", "missed", "unchecked"];
  return table(
    [...header, ...more],
    rows.map(({ budget, tally, counts }) => {
      const { success, score, meanSteps } = rates(tally);
      const [low, high] = successInterval(tally);
      return [
        number(budget),
        percent(success),
        `${(100 * low).toFixed(1)} – ${percent(high)}`,
        number(100 * score, 1),
        number(meanSteps, 1),
        ...[counts.checks, counts.vetoes, counts.prevented, counts.falseAlarms].map((n) =>
          number(n),
        ),
        ...[counts.missed, counts.unchecked].map((n) => number(n)),
      ];
    }),
  );
}
