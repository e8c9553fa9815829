import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { findEnvKind } from "../envs/registry.js";
import { readManifest } from "../runs/manifest.js";
import { defaultRunFolder } from "../runs/run-folder.js";
import { type RwmlConfig, rwmlConfig } from "../train/rwml-config.js";
import { rwmlRun } from "../train/rwml-run.js";
import { findSavedModel } from "../train/saved-model.js";
import { defineCommand, exitCodes } from "./command.js";
import { print } from "./io.js";
import { recordRun, runFolderOf } from "./resumable.js";
import { rwmlProgress } from "./rwml-progress.js";

/** `pawl rwml`: reinforcement learning of a world model, between a warm start and task RL. */
export const rwml = defineCommand({
  name: "rwml",
  summary: "teach a model what its actions do, by RL on its own predictions (RWML)",
  details:
    "The model plays, foresees what its actions do, and is rewarded by how near that is to what happened. Environment,\nprompt and limits are those of the run that --model.start names, where it is one; flags change single ones.\ndocs/rwml.md tells how to choose a reward and a threshold, and how task RL follows.",
  options: (peek) =>
    rwmlConfig(findEnvKind(peek("env.name") ?? "household")).extend({
      out: z.string().optional().describe("the run folder to make; default: a new one below runs/"),
      resume: z
        .string()
        .optional()
        .describe("go on with this run, with the settings it was started with"),
    }),
  base(peek) {
    const resume = peek("resume");
    if (resume !== undefined) return { path: `the run ${resume}`, content: configOf(resume) };
    const folder = peek("model.start");
    const config = folder === undefined ? undefined : findSavedModel(folder).config;
    if (config === undefined) return undefined;
    const { env, prompt, maxTokens, stepLimit, evaluation, engine } = config;
    const shared = { env, prompt, maxTokens, evaluation, engine };
    return {
      path: `the run of ${folder}`,
      content: stepLimit === undefined ? shared : { ...shared, stepLimit },
    };
  },
  examples: [
    ["pawl train --updates 0 --out runs/warm", "a warm start to begin with"],
    ["pawl rwml --model.start runs/warm --out runs/rwml", "learn what actions do"],
    ["pawl train --model.start runs/rwml --warm-start.episodes 0", "then learn to act"],
    ["pawl rwml --model.start runs/warm --reward rouge", "words instead of meaning"],
    ["pawl rwml --model.start runs/warm --task.groups 8", "task rewards at the same time"],
    ["pawl rwml --resume runs/…", "go on where a run was interrupted"],
  ],
  async run({ config, io, signal }) {
    const { out, resume, ...given } = config;
    const settings: RwmlConfig = given;
    const folder = runFolderOf({ out, resume }, () =>
      defaultRunFolder("rwml", String(settings.env.name)),
    );
    const progress = rwmlProgress(io, settings.updates);
    const resumed = resume !== undefined;
    await recordRun({ command: "rwml", folder, io, signal }, progress, (onProblem) =>
      rwmlRun(settings, { folder, resume: resumed, signal, onProblem, ...progress }),
    );
    const { summary } = readManifest(folder);
    for (const [name, value] of Object.entries(summary ?? {})) {
      print(io, `${name.padEnd(30)} ${value.toPrecision(4)}`);
    }
    return exitCodes.done;
  },
});

function configOf(folder: string): Readonly<Record<string, unknown>> {
  const { kind, config } = readManifest(folder);
  if (kind !== "rwml") {
    throw new ConfigError(
      `--resume: ${folder} was made by pawl ${kind}: expected a run of pawl rwml`,
    );
  }
  return config;
}
