import { join } from "node:path";
import { z } from "zod";
import {
  comparedLosses,
  gradientShares,
  type NoiseJudge,
  noisySteps,
} from "../bench/gradient-shares.js";
import { noisyByRules, noisyCharacters } from "../bench/noisy-text.js";
import { ConfigError } from "../config/config-error.js";
import { openEnvironment } from "../envs/open.js";
import { openRun } from "../runs/run-folder.js";
import { openSavedModel } from "../train/open-model.js";
import { trainConfigOf } from "../train/recorded-config.js";
import { findSavedModel, REFERENCE } from "../train/saved-model.js";
import { defineCommand, exitCodes } from "./command.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";

/** `pawl bench gradients`: which loss learns from noise? */
export const benchGradients = defineCommand({
  name: "bench gradients",
  summary: "show on which tokens each world-model loss puts its gradient: noise or the rest",
  positionals: "RUN",
  details: [
    "Reads the recorded episodes of a training run. Whatever changes in an observation when the same actions",
    "are repeated under another seed is noise; the rest can be learnt. For the weights before RL and for the",
    "latest ones, shows the share of each loss's gradient on either kind of token (the paper's figure 2c).",
    "WebShop draws nothing anew: there --noise webshop finds product ids and brands by the paper's rules.",
  ].join("\n"),
  options: () =>
    z.strictObject({
      episodes: z.int().min(1).default(64).describe("number of episodes, the first of the run"),
      noise: z
        .enum(["replay", "webshop"])
        .default("replay")
        .describe(
          "what noise is: replay: what changes under another seed; webshop: product ids and brands on pages of search results",
        ),
      rho: z.number().min(0).max(1).default(0.2).describe("ρ of the clipped losses"),
      threads: z.int().min(1).optional().describe("CPU threads (default: those of the run)"),
      json: z.boolean().default(false).describe("print the results as one line of JSON"),
    }),
  examples: [
    ["pawl train --env.noise all --out runs/noisy", "a run with words that cannot be predicted"],
    ["pawl bench gradients runs/noisy", "what each loss would learn from"],
    ["pawl bench gradients runs/shop --noise webshop", "the same in WebShop, as in the paper"],
  ],
  async run({ config, positionals, io, signal }) {
    const [folder] = positionals;
    if (folder === undefined)
      throw new ConfigError("pawl bench gradients needs a run folder: pawl bench gradients RUN");
    const settings = trainConfigOf(folder);
    const environment = openEnvironment({ ...settings.env, name: String(settings.env.name) });
    if (config.noise === "webshop" && environment.name !== "webshop")
      throw new ConfigError(
        `--noise: webshop is for runs in webshop, and ${folder} was trained in ${environment.name}; use replay`,
      );
    const judge: NoiseJudge =
      config.noise === "webshop"
        ? noisyByRules
        : (episode) => noisyCharacters(environment, episode);
    const threads = config.threads ?? settings.engine.threads;
    const saved = findSavedModel(folder);
    const model = await openSavedModel(saved, threads === undefined ? {} : { threads });
    try {
      const run = openRun(folder, (message) => warn(io, message));
      const episodes = first(run.episodes(), config.episodes);
      const { steps, left } = await noisySteps(judge, model.tokenizer, episodes);
      const reason =
        config.noise === "webshop" ? "no page of search results" : "their text cannot be matched";
      if (left > 0) warn(io, `${left} steps skipped: ${reason}`);
      if (!steps.some(({ noisy }) => noisy.includes(true)))
        warn(
          io,
          config.noise === "webshop"
            ? "no observation contains noise: are there pages of search results?"
            : "no observation contains noise: was the run trained with --env.noise all?",
        );
      const found: Record<string, unknown> = {};
      for (const [name, weights] of [
        ["before RL", join(folder, REFERENCE)],
        ["latest", saved.weights],
      ] as const) {
        signal.throwIfAborted();
        await model.engine.load(weights);
        const shares = await gradientShares(model.engine, steps, comparedLosses(config.rho));
        found[name] = shares;
        if (config.json) continue;
        const { tokens, noisyTokens, noisyP, meaningfulP } = shares;
        print(
          io,
          `${name}: ${number(tokens)} observation tokens, ${percent(noisyTokens / tokens)} of them noise; mean p ${number(noisyP, 2)} of noise, ${number(meaningfulP, 2)} of the rest`,
        );
        const rows = shares.losses.map(({ loss, noisy, meaningful, total }) => [
          loss,
          percent(noisy),
          percent(meaningful),
          number(total / tokens, 4),
        ]);
        for (const line of table(["loss", "on noise", "on the rest", "per token"], rows))
          print(io, line);
        print(io);
      }
      if (config.json) print(io, JSON.stringify(found));
    } finally {
      await model.engine.dispose();
    }
    return exitCodes.done;
  },
});

function* first<T>(items: Iterable<T>, count: number): Generator<T> {
  let taken = 0;
  for (const item of items) {
    if (taken++ >= count) return;
    yield item;
  }
}
