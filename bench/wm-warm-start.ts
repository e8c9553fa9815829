/**
 * `npm run bench -- wm-warm-start --world.data DATA`: does it help an agent to have been a world model first?
 *
 * Compares WM-SFT → Agent-SFT → RL with Agent-SFT → RL, from the same weights and tokenizer, by recipes/warm-start.ts.
 * Repeated with the same --out, it keeps what is finished and continues with the rest.
 */
import { z } from "zod";
import { warmStart } from "../recipes/warm-start.js";
import { arms, compareWarmStart, meanCurve } from "../src/bench/world-first.js";
import { findEnvKind } from "../src/envs/registry.js";
import { trainConfig } from "../src/train/config.js";
import { worldTrainConfig } from "../src/worldmodel/config.js";
import { onProblem, studySettings } from "./shared/study-settings.js";

const settings = z.strictObject({
  world: worldTrainConfig.omit({ model: true, engine: true, seed: true }),
  train: trainConfig(findEnvKind("household")).prefault({}),
  seeds: z.array(z.int().min(0)).min(1).default([0, 1, 2]),
  out: z.string().default("runs/wm-warm-start"),
});

export async function main(args: readonly string[]): Promise<object> {
  const recipe = { path: "recipes/warm-start.ts", content: warmStart };
  const { out, ...config } = studySettings(settings, args, [recipe]).config;
  const curves = await compareWarmStart(config, { folder: out, onProblem });
  const means = arms.map((arm) => {
    const bySplit = [...meanCurve(curves, arm)].map(([split, curve]) => [
      split,
      Object.fromEntries(curve),
    ]);
    return [arm, Object.fromEntries(bySplit)];
  });
  return { folder: out, means: Object.fromEntries(means) };
}
