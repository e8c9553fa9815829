import { basename } from "node:path";
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { defaultRunFolder } from "../runs/run-folder.js";
import { settingConditions } from "../train/applies.js";
import { resumeChanges } from "../train/resume.js";
import { type WorldTrainConfig, worldTrainConfig } from "../worldmodel/config.js";
import { worldConfigOf } from "../worldmodel/saved.js";
import { trainWorldModel } from "../worldmodel/train.js";
import { defineCommand, exitCodes } from "./command.js";
import { runHeader } from "./phase-view.js";
import { recordRun, resumeSettings, runFolderOf, settingsOfRun } from "./resumable.js";
import { worldProgress } from "./wm-progress.js";

/** `pawl wm train`: WM-SFT, recorded to a run folder. */
export const wmTrain = defineCommand({
  name: "wm train",
  summary: "train a world model on trajectories (WM-SFT)",
  details:
    "The model learns to answer actions as the world does, from successes and failures. The result is an ordinary model:\npawl train --model.start RUN/model continues from it. With --resume, epochs, evaluation, checkpointEvery and engine\nmay change.",
  base(given) {
    const resume = given.peek("resume");
    return resume === undefined ? undefined : settingsOfRun(resume, worldConfigOf, given);
  },
  options: () =>
    worldTrainConfig.extend({
      data: worldTrainConfig.shape.data.optional(),
      out: z.string().optional().describe("run folder to create (default: a new one in runs/)"),
      ...resumeSettings("--epochs 10"),
    }),
  examples: [
    ["pawl wm train --data data/household", "a small model from scratch"],
    [
      "pawl wm train --data data/household,data/webshop --budget household=1000,webshop=1000",
      "one model of two environments",
    ],
    ["pawl wm train --data data/household --model.start Qwen2.5-0.5B", "from a checkpoint folder"],
    ["pawl wm train --resume runs/…", "resume an interrupted run"],
  ],
  applies: settingConditions,
  async run({ config, given, placeOf, io, signal }) {
    const { out, resume, forceUnlock, ...rest } = config;
    if (rest.data === undefined)
      throw new ConfigError("--data: required, but not given; pawl wm data creates some");
    const settings = rest as WorldTrainConfig;
    const folder = runFolderOf(
      { out, resume, forceUnlock },
      {
        fresh: () => defaultRunFolder("wm-train", basename(settings.model.start)),
        check: (run) =>
          resumeChanges(worldConfigOf(run), settings, { folder: run, length: "epochs", placeOf }),
      },
    );
    const header = runHeader(folder, settings.data.join(", "), settings);
    const progress = worldProgress(io, "world model", header);
    const resumed = resume !== undefined;
    await recordRun({ command: "wm train", folder, io, signal }, progress, (onProblem) =>
      trainWorldModel(settings, {
        folder,
        resume: resumed,
        forceUnlock,
        given,
        placeOf,
        signal,
        onProblem,
        ...progress,
      }),
    );
    return exitCodes.done;
  },
});
