import { defaultRunFolder, openRun } from "@pawl/core/runs/run-folder.js";
import { settingConditions } from "@pawl/training/applies.js";
import { type TrainConfig, trainConfig } from "@pawl/training/config.js";
import {
  isTight,
  planRun,
  type RunPlan,
  type SizePlan,
  type TimePlan,
} from "@pawl/training/plan.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { resumeChanges } from "@pawl/training/resume.js";
import { checkTraining, checkTrainResume, trainRun } from "@pawl/training/run.js";
import { z } from "zod";
import { agentOption, refuseAgentInFile } from "./agent-option.js";
import { defineCommand, exitCodes } from "./command.js";
import { defaultRecipe, quickRecipe } from "./default-recipe.js";
import { envKindOf } from "./env-options.js";
import { number } from "./format.js";
import { runHeader } from "./phase-view.js";
import {
  checkRunFolder,
  recordRun,
  resumeSettings,
  runFolderOf,
  settingsOfRun,
  withJson,
} from "./resumable.js";
import { trainProgress } from "./train-progress.js";

/** All that can be said. */
const planLines = (
  { size, time, contradictions = [] }: RunPlan,
  updates: number,
): readonly string[] => [
  ...(size === undefined ? [] : [sizeLine(size)]),
  ...(time === undefined
    ? []
    : "unknown" in time
      ? [`minutes unknown: ${time.unknown}`]
      : timeLines(time, updates)),
  ...contradictions.map((line) => `warning: ${line}`),
];

/** What is trained, and the memory for it. */
function sizeLine(size: SizePlan): string {
  const { parameters, trained, adapters, memory, here, teacher } = size;
  const millions = (count: number): string => number(count / 1e6, 1);
  const gigabytes = (bytes: number): string => number(bytes / 1e9, 1);
  const what = adapters ? `${millions(trained)} of ${millions(parameters)}` : millions(parameters);
  const memoryWords = `about ${gigabytes(memory)} of the ${gigabytes(here)} GB of memory here${teacher === undefined ? "" : ` (${gigabytes(teacher)} of it for the teacher)`}`;
  const tight = isTight(size)
    ? ": too little, unless episodes are short (pawl model info says what it counts)"
    : "";
  return `trains ${what} million parameters${adapters ? " (adapters)" : ""}, ${memoryWords}${tight}`;
}

/** Tokens and minutes. */
function timeLines(
  { episodes, steps, tokens, learnt, written, imitation, update, evaluation }: TimePlan,
  updates: number,
): readonly string[] {
  const minutes = (seconds: number): string => number(seconds / 60, seconds < 600 ? 1 : 0);
  const parts = [
    ...(imitation > 0 ? [`imitation ${minutes(imitation)}`] : []),
    ...(updates > 0 ? [`${updates} × ${minutes(update)} for updates`] : []),
    ...(evaluation > 0 ? [`evaluation ${minutes(evaluation)}`] : []),
  ];
  const all = imitation + updates * update + evaluation;
  return [
    `up to ${number(tokens)} tokens an update: ${episodes} episodes of up to ${steps} steps`,
    `up to about ${minutes(all)} minutes: ${parts.join(", ")} (measured now: ${number(learnt)} tokens learnt a second, ${number(written)} written)`,
  ];
}

/** `pawl train`: RL with world-model co-training, recorded to a run folder. */
export const train = defineCommand({
  name: "train",
  summary: "train an agent by RL with world-model co-training",
  worlds: "named",
  details:
    "Uses the recipe of the environment (recipes/), for a pretrained chat model recipes/pretrained.ts, unless --config or\n--recipe gives a complete description; flags change single settings.\nWith --model.start RUN, environment, prompt, limits, evaluation and engine are that run's, without a warm start.\n--resume continues a run; updates, paw.lambda, evaluation, checkpointEvery, alarms, stopOn, track and engine may change\n(docs/settings.md).",
  takesAgent: true,
  common: [
    ...["env.name", "quick", "model.start", "engine.address", "updates", "groups", "groupSize"],
    ...["optimizer.learningRate", "advantage.name", "paw.loss", "evaluation.every", "seed"],
    ...["out", "resume", "json"],
  ],
  async base(given) {
    const { peek } = given;
    if (peek("quick") === "true") return quickRecipe(given);
    const resume = peek("resume");
    if (resume !== undefined) return settingsOfRun(resume, trainConfigOf, given);
    return defaultRecipe(given);
  },
  options: (peek) =>
    trainConfig(envKindOf(peek)).extend({
      out: z.string().optional().describe("run folder to create (default: a new one in runs/)"),
      agent: agentOption,
      quick: z
        .boolean()
        .default(false)
        .describe("a smaller world, to watch an agent learn in a minute and a half"),
      json: z
        .boolean()
        .default(false)
        .describe("print the metrics of every update as a line of JSON"),
      ...resumeSettings("--updates 300"),
    }),
  examples: [
    ["pawl train", "watch a small agent learn"],
    ["pawl train --quick", "the same in a minute and a half, in a smaller world"],
    ["pawl train --paw.loss off", "the same without world modelling"],
    ["pawl train --env webshop", "another world, with its own recipe"],
    ["pawl train --model.start FILE.gguf", "a pretrained chat model, as conversations"],
    [
      "pawl train --agent ./agent.ts --model.start FILE.gguf",
      "train your own agent's model (docs/tutorials/own-agent.md)",
    ],
    ["pawl train --resume runs/…", "resume an interrupted run"],
    [
      "pawl train --stop-on groups,reward",
      "end the run when such an alarm is raised (docs/alarms.md)",
    ],
    ["pawl train --track trackio=http://127.0.0.1:7860", "watch it there (docs/trackers.md)"],
    ["pawl train --resume runs/… --updates 300", "make a run longer, finished or not"],
    ["pawl train --engine http://gpu:8000", "the same on an engine server (pawl serve engine)"],
  ],
  applies: settingConditions,
  async check(config, how) {
    const { out, resume, forceUnlock, quick: _, agent, json: __, ...rest } = config;
    refuseAgentInFile(agent);
    const settings = rest as TrainConfig;
    const { env, model, updates, groups, groupSize } = settings;
    checkTraining(settings, { ...how, resume: resume !== undefined });
    checkRunFolder({ out, resume, forceUnlock }, (run) =>
      checkTrainResume(settings, { folder: run, resume: true, forceUnlock, placeOf: how.placeOf }),
    );
    const says = `pawl train would make ${updates} updates of ${groups} × ${groupSize} episodes in ${env.name} with ${model.start}, recorded to ${out ?? resume ?? "a new folder in runs/"}`;
    if (resume !== undefined) return says;
    return [says, ...planLines(await planRun(settings), updates)].join("\n");
  },
  async run({ config, recipe, given, placeOf, io, signal }) {
    const { out, resume, forceUnlock, quick: _, agent, json, ...rest } = config;
    refuseAgentInFile(agent);
    const settings = rest as TrainConfig;
    const folder = runFolderOf(
      { out, resume, forceUnlock },
      {
        fresh: () => defaultRunFolder("train", String(settings.env.name)),
        check: (run) =>
          resumeChanges(trainConfigOf(run), settings, { folder: run, length: "updates", placeOf }),
      },
    );
    const header = runHeader(folder, String(settings.env.name), settings);
    const resumed = resume !== undefined;
    const progress = trainProgress(io, settings.updates, {
      header,
      ...(resumed && { earlier: () => openRun(folder, () => undefined).metrics() }),
    });
    if (!resumed && recipe !== undefined) progress.onAbout(`settings: ${recipe}`);
    await recordRun({ command: "train", folder, json, io, signal }, progress, (onProblem) =>
      trainRun(settings, {
        ...{ folder, resume: resumed, forceUnlock, recipe, given, placeOf, signal, onProblem },
        onPlan: (plan) => planLines(plan, settings.updates).forEach(progress.onAbout),
        ...(json ? withJson(io, progress) : progress),
      }),
    );
    return exitCodes.done;
  },
});
