/**
 * `npm run bench -- gradients RUN`: which world-model loss learns from noise (the paper's figure 2c)?
 *
 * Reads the recorded episodes of a training run. Whatever changes in an observation when the same actions are repeated
 * under another seed is noise; the rest can be learnt. For the weights before RL and for the latest ones, gives the
 * share of each loss's gradient on either kind of token. WebShop draws nothing anew: there --noise webshop finds
 * product ids and brands by the paper's rules.
 */
import { join } from "node:path";
import { z } from "zod";
import { comparedLosses, gradientShares, noisySteps } from "../src/bench/gradient-shares.js";
import { noisyByRules, noisyCharacters } from "../src/bench/noisy-text.js";
import { openEnvironment } from "../src/envs/open.js";
import type { Episode } from "../src/rollout/episode.js";
import { openRun } from "../src/runs/run-folder.js";
import { openSavedModel } from "../src/train/open-model.js";
import { trainConfigOf } from "../src/train/recorded-config.js";
import { findSavedModel, REFERENCE } from "../src/train/saved-model.js";
import { onProblem, studySettings } from "./shared/study-settings.js";

const settings = z.strictObject({
  episodes: z.int().min(1).default(64),
  noise: z.enum(["replay", "webshop"]).default("replay"),
  rho: z.number().min(0).max(1).default(0.2),
  threads: z.int().min(1).optional(),
});

export async function main(args: readonly string[]): Promise<object> {
  const { config, positionals } = studySettings(settings, args);
  const [folder] = positionals;
  if (folder === undefined) throw new Error("expected a run: npm run bench -- gradients RUN");
  const { env, engine } = trainConfigOf(folder);
  const environment = openEnvironment({ ...env, name: String(env.name) });
  const judge =
    config.noise === "webshop"
      ? noisyByRules
      : (episode: Episode) => noisyCharacters(environment, episode);
  const saved = findSavedModel(folder);
  const model = await openSavedModel(saved, { threads: config.threads ?? engine.threads });
  try {
    const episodes = [...openRun(folder, onProblem).episodes()].slice(0, config.episodes);
    const { steps, left } = await noisySteps(judge, model.tokenizer, episodes);
    if (left > 0) onProblem(`${left} steps skipped: which of their text is noise is unknown`);
    const shares: Record<string, unknown> = {};
    for (const [name, weights] of [
      ["before RL", join(folder, REFERENCE)],
      ["latest", saved.weights],
    ] as const) {
      await model.engine.load(weights);
      shares[name] = await gradientShares(model.engine, steps, comparedLosses(config.rho));
    }
    return shares;
  } finally {
    await model.engine.dispose();
  }
}
