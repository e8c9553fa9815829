import { readManifest } from "@pawl/core/runs/manifest.js";
import { defaultRunFolder } from "@pawl/core/runs/run-folder.js";
import { resumeChanges } from "@pawl/training/resume.js";
import { settingsOfModel } from "@pawl/training/saved-model.js";
import {
  type RwmlConfig,
  rwmlConditions,
  rwmlConfig,
  rwmlConfigOf,
} from "@pawl/worldmodel/rwml/config.js";
import { rwmlRun } from "@pawl/worldmodel/rwml/run.js";
import { z } from "zod";
import { engineOfRun, sameEnvironment } from "./checkpoint-policy.js";
import { defineCommand, exitCodes } from "./command.js";
import { envKindOf } from "./env-options.js";
import { print } from "./io.js";
import { runHeader } from "./phase-view.js";
import { recordRun, resumeSettings, runFolderOf, settingsOfRun } from "./resumable.js";
import { rwmlProgress } from "./rwml-progress.js";

/** `pawl rwml`: reinforcement learning of a world model, between a warm start and task RL. */
export const rwml = defineCommand({
  name: "rwml",
  summary: "teach a model what its actions do, by RL on its own predictions (RWML)",
  worlds: "named",
  details:
    "The model plays, predicts what its actions do, and is rewarded by how close it comes (docs/rwml.md). Environment,\nprompt, limits and engine are those of the run at --model.start. With --resume, updates, evaluation, checkpointEvery\nand engine may change.",
  options: (peek) =>
    rwmlConfig(envKindOf(peek)).extend({
      out: z.string().optional().describe("run folder to create (default: a new one in runs/)"),
      ...resumeSettings("--updates 300"),
    }),
  base(given) {
    const { peek } = given;
    const resume = peek("resume");
    if (resume !== undefined) return settingsOfRun(resume, rwmlConfigOf, given);
    const folder = peek("model.start");
    const config =
      folder === undefined || folder === "served" ? undefined : settingsOfModel(folder);
    if (folder === undefined || config === undefined) return undefined;
    const { env, prompt, maxTokens, stepLimit, evaluation } = config;
    return {
      path: `the run of ${folder}`,
      file: "over",
      content: {
        env: sameEnvironment(env, folder, given),
        prompt,
        maxTokens,
        evaluation,
        engine: engineOfRun(config.engine, given),
        ...(stepLimit !== undefined && { stepLimit }),
      },
    };
  },
  examples: [
    ["pawl train --updates 0 --out runs/warm", "a warm start to start from"],
    ["pawl rwml --model.start runs/warm --out runs/rwml", "learn what actions do"],
    ["pawl train --model.start runs/rwml --warm-start.episodes 0", "then learn to act"],
    ["pawl rwml --model.start runs/warm --reward rouge", "word overlap instead of meaning"],
    ["pawl rwml --model.start runs/warm --task.groups 8", "task rewards at the same time"],
    ["pawl rwml --resume runs/…", "resume an interrupted run"],
  ],
  applies: rwmlConditions,
  async run({ config, given, placeOf, io, signal }) {
    const { out, resume, forceUnlock, ...rest } = config;
    const settings: RwmlConfig = rest;
    const folder = runFolderOf(
      { out, resume, forceUnlock },
      {
        fresh: () => defaultRunFolder("rwml", String(settings.env.name)),
        check: (run) =>
          resumeChanges(rwmlConfigOf(run), settings, { folder: run, length: "updates", placeOf }),
      },
    );
    const header = runHeader(folder, String(settings.env.name), settings);
    const progress = rwmlProgress(io, settings.updates, header);
    const resumed = resume !== undefined;
    await recordRun({ command: "rwml", folder, io, signal }, progress, (onProblem) =>
      rwmlRun(settings, {
        ...{ folder, resume: resumed, forceUnlock, given, placeOf, signal, onProblem },
        ...progress,
      }),
    );
    const { summary } = readManifest(folder);
    for (const [name, value] of Object.entries(summary ?? {})) {
      print(io, `${name.padEnd(30)} ${value.toPrecision(4)}`);
    }
    return exitCodes.done;
  },
});
