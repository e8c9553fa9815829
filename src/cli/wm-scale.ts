import { join } from "node:path";
import { z } from "zod";
import { defaultRunFolder } from "../runs/run-folder.js";
import { forceUnlockSetting } from "../train/resume.js";
import { worldTrainConfig } from "../worldmodel/config.js";
import { measureScaling } from "../worldmodel/scale.js";
import { defineCommand, exitCodes } from "./command.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";
import { worldProgress } from "./wm-progress.js";
import { finiteJson, writeResult } from "./wm-result.js";

const count = z.int().min(1);

/** `pawl wm scale`: learning curves over data size and model size. */
export const wmScale = defineCommand({
  name: "wm scale",
  summary: "learning curves of world models over data size and model size",
  details:
    "Trains every model on every number of trajectories and scores all on the same test turns. Repeated with\nthe same --out, it keeps what is finished and continues with the rest.",
  options: () =>
    worldTrainConfig.omit({ budget: true }).extend({
      sizes: z
        .array(count)
        .min(1)
        .default([100, 300, 1000])
        .describe("numbers of training trajectories per environment"),
      models: z
        .array(z.string())
        .min(1)
        .default(["tiny", "small"])
        .describe("model sizes, or checkpoint folders"),
      testTrajectories: count.default(64).describe("test trajectories to score every model on"),
      out: z.string().optional().describe("folder for the runs (default: a new one in runs/)"),
      forceUnlock: forceUnlockSetting,
      json: z.boolean().default(false).describe("print the curves as one line of JSON"),
    }),
  examples: [
    ["pawl wm scale --data data/household --sizes 100,300,1000 --models tiny,small", "six models"],
    ["pawl wm scale --data data/household --out runs/…", "resume an interrupted comparison"],
  ],
  async run({ config, io, signal }) {
    const { sizes, models, testTrajectories, out, forceUnlock, json, ...settings } = config;
    const folder = out ?? defaultRunFolder("wm-scale", "models");
    const progress = worldProgress(io);
    try {
      const points = await measureScaling(settings, {
        folder,
        sizes,
        models,
        testTrajectories,
        forceUnlock,
        signal,
        onProblem: (message) => warn(io, message),
        ...progress,
      });
      writeResult(join(folder, "scale.json"), { points });
      progress.end();
      if (json) {
        print(io, finiteJson({ folder, points }));
        return exitCodes.done;
      }
      const rows = points.map(({ model, parameters, size, fidelity }) => [
        model,
        number(parameters),
        number(size),
        percent(fidelity.all.exactMatch),
        percent(fidelity.all.f1),
        percent(fidelity.all.successRecall ?? Number.NaN),
      ]);
      const header = ["model", "parameters", "trajectories", "exact match", "word F1", "recall"];
      for (const line of table(header, rows)) print(io, line);
      print(io, `\nrecorded to ${folder}`);
    } catch (error) {
      progress.end();
      if (signal.aborted) warn(io, `interrupted; the same command with --out ${folder} resumes it`);
      throw error;
    }
    return exitCodes.done;
  },
});
