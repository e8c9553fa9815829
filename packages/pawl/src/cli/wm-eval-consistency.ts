import { openEnvironment } from "@pawl/core/envs/open.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { evaluationTasks } from "@pawl/core/train/evaluate.js";
import { anchorOptions } from "@pawl/worldmodel/config.js";
import {
  type ConsistencyResult,
  consistencyRates,
  divergenceOf,
  measureConsistency,
  ratioInterval,
} from "@pawl/worldmodel/consistency.js";
import { chatPlayerOptions, checkPlayers, openPlayer } from "@pawl/worldmodel/players.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { fetchingOf } from "./fetching.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";
import { countProgress } from "./wm-progress.js";
import { finiteJson, writeResult } from "./wm-result.js";
import { openWorld, refuseIgnoredWorld, warnOfLists, worldOptions } from "./wm-world.js";

const count = z.int().min(1);

/** `pawl wm eval consistency`: does what works in the model work in the world? */
export const wmEvalConsistency = defineCommand({
  name: "wm eval consistency",
  summary: "Real, WM, W2R and the consistency ratio of policies inside a world model",
  details:
    "Real: success in the environment. WM: success inside the model, by its own judgement. W2R: the actions of the WM\nepisodes, replayed in the environment. CR = W2R / Real. Policies marked * see the real world.",
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      model: z
        .string()
        .min(1)
        .optional()
        .describe("a run of pawl wm train or pawl train, or a model folder (or --chat.…)"),
      policies: z
        .array(z.string())
        .min(1)
        .default(["expert", "epsilon=0.3"])
        .describe(
          "who plays: expert, seeker, random, epsilon=PROBABILITY, chat (--player.…), or runs and models",
        ),
      player: chatPlayerOptions(),
      split: z.string().default("valid_seen").describe("split to take tasks from"),
      tasks: count.default(64).describe("maximum number of tasks, a fixed random sample"),
      stepLimit: count
        .optional()
        .describe("maximum steps per episode (default: the environment's limit)"),
      anchor: anchorOptions,
      temperature: z
        .number()
        .min(0)
        .optional()
        .describe("sampling temperature of trained agents (default: their own)"),
      ...worldOptions,
      seed: z.int().min(0).default(0).describe("random seed"),
      out: z.string().optional().describe("write the results to this JSON file"),
      json: z.boolean().default(false).describe("print the results as one line of JSON"),
    }),
  examples: [
    [
      "pawl wm eval consistency --model runs/… --policies expert,epsilon=0.3,runs/agent",
      "three policies",
    ],
    [
      "pawl wm eval consistency --model runs/… --env webshop --anchor.actions 'search['",
      "with real search results",
    ],
    [
      "pawl wm eval consistency --model runs/… --policies chat --player.base-url http://localhost:8000/v1 --player.model NAME",
      "a chat model as the agent",
    ],
    [
      "pawl wm eval consistency --chat.base-url http://localhost:8000/v1 --chat.model NAME --examples data/household",
      "a chat model as the world model, shown three trajectories",
    ],
  ],
  async run({ config, given, placeOf, io, signal }) {
    refuseIgnoredWorld(config, given, placeOf);
    const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
    const tasks = evaluationTasks(environment, config.split, { tasks: config.tasks });
    const { every, actions } = config.anchor;
    const anchor = every > 0 || actions.length > 0 ? config.anchor : undefined;
    checkPlayers(config.policies, config);
    const world = await openWorld(config, { environment: environment.name, flag: "--model", io });
    const results: ConsistencyResult[] = [];
    try {
      for (const text of config.policies) {
        const fetching = fetchingOf(io, signal);
        const player = await openPlayer(text, environment, { ...config, fetching });
        warnOfLists(player, io);
        try {
          const { model } = world;
          const { seed, stepLimit } = config;
          const progress = countProgress(io, `${text}: episodes`, 2 * tasks.length);
          const onEpisodes = progress.onCount;
          const options = { environment, model, player, tasks, seed, stepLimit, anchor, signal };
          const measured = measureConsistency({ ...options, onEpisodes });
          results.push(await measured.finally(progress.end));
        } finally {
          await player.dispose();
        }
      }
    } finally {
      await world.dispose();
    }
    const result = {
      model: world.model.name,
      env: environment.name,
      split: config.split,
      tasks: tasks.length,
      policies: results.map((one) => summaryOf(one)),
    };
    writeResult(config.out, {
      ...result,
      cases: Object.fromEntries(results.map(({ policy, cases }) => [policy, cases])),
    });
    if (config.json) {
      print(io, finiteJson(result));
      return exitCodes.done;
    }
    for (const line of consistencyTable(results)) print(io, line);
    for (const { policy, endings, broken } of results) {
      const parts = Object.entries(endings).map(([ending, n]) => `${ending} ${n}`);
      print(io, `${policy}: the model ended episodes by ${parts.join(", ") || "nothing"}`);
      if (broken > 0)
        warn(io, `${policy}: ${broken} tasks broke and are excluded from all numbers`);
    }
    return exitCodes.done;
  },
});

function intervalOf(result: ConsistencyResult, key: "real" | "wm" | "w2r") {
  const successes = result.cases.filter((one) => one[key]).length;
  return successInterval({ successes, episodes: result.cases.length });
}

function summaryOf(result: ConsistencyResult) {
  const { policy, looksInside, cases, broken, endings, anchored } = result;
  const { never, median } = divergenceOf(cases);
  return {
    policy,
    looksInside,
    ...consistencyRates(cases),
    intervals: {
      real: intervalOf(result, "real"),
      wm: intervalOf(result, "wm"),
      w2r: intervalOf(result, "w2r"),
      cr: ratioInterval(cases),
    },
    neverDiverges: never,
    medianDivergence: median,
    broken,
    endings,
    anchored,
  };
}

function consistencyTable(results: readonly ConsistencyResult[]): readonly string[] {
  const rows = results.map((result) => {
    const { real, wm, w2r, cr } = consistencyRates(result.cases);
    const { never, median } = divergenceOf(result.cases);
    const shown = (share: number, key: "real" | "wm" | "w2r"): string => {
      const [low, high] = intervalOf(result, key);
      return `${percent(share)} (${(100 * low).toFixed(0)}–${(100 * high).toFixed(0)})`;
    };
    const interval = ratioInterval(result.cases);
    return [
      `${result.policy}${result.looksInside ? " *" : ""}`,
      shown(real, "real"),
      shown(wm, "wm"),
      shown(w2r, "w2r"),
      `${number(cr, 2)}${interval === undefined ? "" : ` (${interval.map((x) => number(x, 2)).join("–")})`}`,
      percent(never),
      number(median),
    ];
  });
  const header = ["policy", "Real", "WM", "W2R", "CR", "never diverges", "median divergence"];
  return table(header, rows);
}
