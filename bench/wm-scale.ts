/**
 * `npm run bench -- wm-scale --data DATA --sizes 100,300,1000 --models tiny,small`: learning curves of world models over data
 * size and model size. Every model is trained on every number of trajectories and scored on the same test turns.
 * Repeated with the same --out, it keeps what is finished and continues with the rest.
 */
import { z } from "zod";
import { measureScaling } from "../src/bench/world-scale.js";
import { worldTrainConfig } from "../src/worldmodel/config.js";
import { onProblem, studySettings } from "./shared/study-settings.js";

const count = z.int().min(1);

const settings = worldTrainConfig.omit({ budget: true }).extend({
  sizes: z.array(count).min(1).default([100, 300, 1000]),
  models: z.array(z.string()).min(1).default(["tiny", "small"]),
  testTrajectories: count.default(64),
  out: z.string().default("runs/wm-scale"),
});

export async function main(args: readonly string[]): Promise<object> {
  const { sizes, models, testTrajectories, out, ...config } = studySettings(settings, args).config;
  const options = { folder: out, sizes, models, testTrajectories, onProblem };
  return { folder: out, points: await measureScaling(config, options) };
}
