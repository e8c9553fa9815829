import { z } from "zod";
import { laptop } from "../../recipes/laptop.js";
import { quick } from "../../recipes/quick.js";
import { ConfigError } from "../config/config-error.js";
import { findEnvKind } from "../envs/registry.js";
import { readManifest } from "../runs/manifest.js";
import { defaultRunFolder } from "../runs/run-folder.js";
import { type TrainConfig, trainConfig } from "../train/config.js";
import { isRemote } from "../train/engines.js";
import { resumedSettings } from "../train/recorded-settings.js";
import { trainRun } from "../train/run.js";
import { defineCommand, exitCodes } from "./command.js";
import { warn } from "./io.js";
import { recordRun, runFolderOf } from "./resumable.js";

import { trainProgress } from "./train-progress.js";

/** `pawl train`: RL with world-model co-training, recorded to a run folder. */
export const train = defineCommand({
  name: "train",
  summary: "train an agent by RL with world-model co-training",
  details:
    "Without --config, the settings of recipes/laptop.ts hold: a small model from scratch learns the\nhousehold world on two cores; with --quick those of recipes/quick.ts, an easier world and a shorter run.\nFlags change single settings.",
  base(peek, configPath) {
    if (peek("quick") !== "true") return { path: "recipes/laptop.ts", content: laptop };
    const other = configPath === undefined ? peek("resume") && "--resume" : "--config";
    if (other) {
      throw new ConfigError(
        `--quick stands for the settings of recipes/quick.ts, and ${other} names others: leave one of them out.`,
      );
    }
    return { path: "recipes/quick.ts", content: quick };
  },
  options: (peek) =>
    trainConfig(findEnvKind(peek("env.name") ?? "household")).extend({
      out: z.string().optional().describe("the run folder to make; default: a new one below runs/"),
      quick: z
        .boolean()
        .default(false)
        .describe("a smaller world, to see an agent learn in a minute and a half"),
      resume: z
        .string()
        .optional()
        .describe("go on with this run and its settings; --engine http://… says where it goes on"),
    }),
  examples: [
    ["pawl train", "watch a small agent learn"],
    ["pawl train --quick", "the same in a minute and a half, in a smaller world"],
    ["pawl train --paw.loss off", "the same without world modelling"],
    ["pawl train --resume runs/…", "go on where a run was interrupted"],
    ["pawl train --engine http://gpu:8000", "the same on an engine server (pawl serve engine)"],
  ],
  async run({ config, io, signal }) {
    const { out, resume, quick: _, ...given } = config;
    const { engine } = given as TrainConfig;
    const { config: settings, notice } =
      resume === undefined ? { config: given as TrainConfig } : moved(resume, engine);
    if (notice !== undefined) warn(io, notice);
    const folder = runFolderOf({ out, resume }, () =>
      defaultRunFolder("train", String(settings.env.name)),
    );
    const progress = trainProgress(io, settings.updates);
    const resumed = resume !== undefined;
    await recordRun({ command: "train", folder, io, signal }, progress, (onProblem) =>
      trainRun(settings, { folder, resume: resumed, signal, onProblem, ...progress }),
    );
    return exitCodes.done;
  },
});

/** The settings of a run that goes on; its server may have moved, or the run moves to one. */
function moved(run: string, engine: TrainConfig["engine"]): ReturnType<typeof resumedSettings> {
  const resumed = resumedSettings(readManifest(run).config);
  if (!isRemote(engine)) return resumed;
  const { config } = resumed;
  return { ...resumed, config: { ...config, engine: { ...config.engine, name: engine.name } } };
}
