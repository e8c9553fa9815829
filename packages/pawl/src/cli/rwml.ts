import { readManifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { defaultRunFolder } from "@pawl/core/runs/run-folder.js";
import type { Activity } from "@pawl/core/train/activity.js";
import type { SeenAlarm } from "@pawl/core/train/watch.js";
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
import { number, percent } from "./format.js";
import { type Io, note, print } from "./io.js";
import { curve, phaseView, runHeader, sparkline, successes } from "./phase-view.js";
import { recordRun, resumeSettings, runFolderOf, settingsOfRun } from "./resumable.js";
import { alarmLine } from "./train-progress.js";

// The live view of RWML: how often predictions are correct, and the estimated time.

const LABEL = 13;
const MAIN = "rwml";
/** What the phases of `rwmlRun` are called. */
const PHASES: Readonly<Record<string, string>> = {
  reward: "opening the reward",
  model: "opening the model",
  collect: "collecting triplets",
  filter: "filtering triplets",
  forgetting: "measuring what was forgotten",
};

/** Shows the progress of RWML; its methods fit the callbacks of `rwmlRun`. */
interface RwmlProgress {
  onPhase(phase: string): void;
  onMetrics(line: MetricsLine): void;
  onAlarm(alarm: SeenAlarm): void;
  onActivity(activity: Activity): void;
  /** What is being done now, in words. */
  doing(): string;
  end(): void;
}

/** Starts a live view for this many updates; `header` says what is trained where. */
export function rwmlProgress(io: Io, updates: number, header?: string): RwmlProgress {
  const { cyan, dim, green } = io.colors;
  const rewards: number[] = [];
  const heldOut: number[] = [];
  const evaluations = new Map<string, number[]>();
  let updatesBefore: number | undefined;
  let last: MetricsLine = {};
  const label = (text: string): string => dim(text.padEnd(LABEL));
  const more = (): readonly string[] => [
    ...(rewards.length === 0
      ? []
      : [
          `${label("reward")}  ${cyan(sparkline(rewards))}  ${number(rewards.at(-1)!, 3)}`,
          [
            `${label("predictions")}  exact ${percent(last["rwml.exact"] ?? Number.NaN)}`,
            equalGroups(last),
            `${number((last["train.tokens"] ?? 0) / (last["seconds.learn"] ?? 1))} tokens/s`,
          ].join(dim(" · ")),
        ]),
    ...(heldOut.length === 0
      ? []
      : [`${label("held out")}  ${green(curve(heldOut, (value) => number(value, 3)))}`]),
    ...[...evaluations].map(([split, values]) => `${label(split)}  ${green(curve(values))}`),
  ];
  const view = phaseView(io, { header, main: MAIN, more });

  return {
    onPhase: (phase) => view.onPhase(PHASES[phase] ?? phase),
    onMetrics(line) {
      const parts: string[] = [];
      const reward = line["rwml.reward"];
      if (reward === undefined) {
        parts.push(`${line["triplets.kept"]} of ${line["triplets.collected"]} triplets kept`);
      } else {
        rewards.push(reward);
        last = line;
        const update = line.update!;
        updatesBefore ??= update;
        const words = `update ${update + 1}/${updates}`;
        view.onCount({ words, done: update + 1, total: updates, before: updatesBefore });
        parts.push(words, `reward ${number(reward, 3)}`, `exact ${percent(line["rwml.exact"]!)}`);
        if (line["rwml.equalGroups"]! > 0) parts.push(equalGroups(line));
      }
      const measured = line["heldOut.reward"];
      if (measured !== undefined) {
        heldOut.push(measured);
        parts.push(`held out ${number(measured, 3)}`);
        const sometimes = line["heldOut.foreseen.some"];
        // Only groups with different rewards have anything to compare: without them, RWML learns
        // nothing.
        if (sometimes !== undefined) parts.push(`sometimes correct ${percent(sometimes)}`);
      }
      for (const [split, value] of successes(line)) {
        evaluations.set(split, [...(evaluations.get(split) ?? []), value]);
        parts.push(`${split} ${percent(value)}`);
      }
      if (reward !== undefined) parts.push(`${view.timeLeft()} left`);
      view.plain(parts.join(" · "));
      view.redraw();
    },
    onAlarm: (alarm) => note(io, alarmLine(io, alarm)),
    onActivity: view.onActivity,
    doing: view.doing,
    end: view.end,
  };
}

/** How many groups nothing could be learnt from. */
function equalGroups(line: MetricsLine): string {
  const count = line["rwml.equalGroups"] ?? Number.NaN;
  return `${number(count)} ${count === 1 ? "group" : "groups"} all equal`;
}

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
