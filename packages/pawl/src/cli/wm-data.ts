import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { isTranscriptFile, readTranscripts } from "@pawl/agents/imports/read-transcripts.js";
import { transcriptEpisode } from "@pawl/agents/imports/transcript.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { engineChoice } from "@pawl/training/engines.js";
import { budgetOptions } from "@pawl/worldmodel/config.js";
import {
  DataError,
  type DataSet,
  divideByTask,
  keptApart,
  parseBudgets,
  readDataSets,
  statisticsOf,
  withinBudgets,
  writeDataSet,
} from "@pawl/worldmodel/dataset.js";
import {
  type BehaviourOptions,
  chatPlayerOptions,
  checkPlayers,
  parseBehaviours,
  playBehaviours,
} from "@pawl/worldmodel/players.js";
import { protocolOptions } from "@pawl/worldmodel/protocol.js";
import { datasetInfo, exportChat } from "@pawl/worldmodel/sharegpt.js";
import {
  createProblems,
  type Problems,
  type Trajectory,
  trajectoryOf,
} from "@pawl/worldmodel/trajectory.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { fetchingOf } from "./fetching.js";
import { number, percent, table } from "./format.js";
import { type Io, print, warn } from "./io.js";
import { countProgress } from "./wm-progress.js";

const count = z.int().min(1);

/** `pawl wm data`: trajectories for world models, from play, runs and other people's files. */
export const wmData = defineCommand({
  name: "wm data",
  summary: "make a world-model data set from play, recorded runs or chat JSON",
  details:
    "From policies that play now (--mix), from run folders, data sets and chat JSON (--from), or from both. No task is\nboth for training and for testing.",
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      mix: z
        .array(z.string())
        .default([])
        .describe(
          "policies and numbers of episodes, such as expert:500,random:200,epsilon=0.3:200,runs/…:100,chat:50 (--player.…)",
        ),
      player: chatPlayerOptions(),
      from: z
        .array(z.string())
        .default([])
        .describe(
          "run folders, data sets, chat JSON in the ShareGPT / LLaMA-Factory layout or with tools, and verifiers' traces.jsonl",
        ),
      split: z.string().default("train").describe("split whose tasks are played"),
      stepLimit: count
        .optional()
        .describe("maximum steps per episode (default: the environment's limit)"),
      test: z
        .number()
        .min(0)
        .max(1)
        .default(0.1)
        .describe("fraction of the tasks to hold out for testing"),
      budget: budgetOptions,
      temperature: z
        .number()
        .min(0)
        .optional()
        .describe("sampling temperature of trained agents (default: their own)"),
      engine: engineChoice,
      format: z
        .enum(["pawl", "sharegpt"])
        .default("pawl")
        .describe("Pawl's own format, or chat JSON with a dataset_info.json for LLaMA-Factory"),
      protocol: protocolOptions,
      out: z.string().min(1).describe("output folder"),
      seed: z.int().min(0).default(0).describe("random seed for tasks and sampling"),
      json: z.boolean().default(false).describe("print the statistics as one line of JSON"),
    }),
  examples: [
    [
      "pawl wm data --mix expert:1000,epsilon=0.3:1000,random:500 --out data/household",
      "a behaviour mixture in the household world",
    ],
    ["pawl wm data --from runs/… --out data/agent", "the episodes of a trained agent"],
    [
      "pawl wm data --from alfworld_train.json --budget alfworld=2000 --out data/alfworld",
      "Word-to-World's own files",
    ],
    [
      "pawl wm data --from data/household --format sharegpt --out data/export",
      "for LLaMA-Factory; keeps the split into training and test parts",
    ],
  ],
  async run({ config, io, signal }) {
    const { mix, from, out } = config;
    if (mix.length + from.length === 0)
      throw new ConfigError("pawl wm data: give --mix, --from, or both");
    if (existsSync(out) && readdirSync(out).length > 0)
      throw new ConfigError(`--out: ${out} is not empty; choose another folder`);
    const problems = createProblems((message) => warn(io, message));
    const played = mix.length === 0 ? [] : await playMixture(config, problems, io, signal);
    const recorded = from.filter(hasManifest).flatMap((run) => ofRun(run, problems));
    const isImported = (path: string): boolean => !hasManifest(path) && isTranscriptFile(path);
    const imported = from.filter(isImported).flatMap((path) => ofTranscripts(path, problems));
    const files = from.filter((path) => !hasManifest(path) && !isImported(path));
    const read: DataSet = files.length === 0 ? NOTHING : readDataSets(files, problems);
    const fresh = divideByTask([...played, ...recorded, ...imported], config.test, config.seed);
    // A data set that was split before stays so; a file without a test part is split now.
    const divided =
      read.test.length > 0 ? read : divideByTask(read.train, config.test, config.seed);
    const budgets = parseBudgets(config.budget);
    const whole = keptApart(
      { train: [...divided.train, ...fresh.train], test: [...divided.test, ...fresh.test] },
      problems,
    );
    const data: DataSet = {
      train: withinBudgets(whole.train, budgets, config.seed),
      test: withinBudgets(whole.test, budgets, config.seed),
    };
    if (data.train.length + data.test.length === 0)
      throw new DataError("there is no trajectory to write; what was left out is listed above");
    if (config.format === "pawl") writeDataSet(out, data);
    else {
      mkdirSync(out, { recursive: true });
      const names = { train: "train.json", test: "test.json" };
      for (const part of ["train", "test"] as const) {
        const text = exportChat(data[part], config.protocol);
        writeFileAtomicallySync(join(out, names[part]), text);
      }
      writeFileAtomicallySync(join(out, "dataset_info.json"), datasetInfo(names));
    }
    if (config.json) {
      const parts = { train: statisticsOf(data.train), test: statisticsOf(data.test) };
      print(io, JSON.stringify({ ...parts, leftOut: Object.fromEntries(problems.counts), out }));
      return exitCodes.done;
    }
    for (const line of statisticsTable(data)) print(io, line);
    for (const line of problemLines(problems)) print(io, line);
    print(io, `\nwritten to ${out}`);
    return exitCodes.done;
  },
});

const NOTHING: DataSet = { train: [], test: [] };

async function playMixture(
  config: Pick<
    BehaviourOptions,
    "split" | "stepLimit" | "temperature" | "engine" | "seed" | "player"
  > & {
    readonly env: Readonly<Record<string, unknown>>;
    readonly mix: readonly string[];
  },
  problems: Problems,
  io: Io,
  signal: AbortSignal,
): Promise<readonly Trajectory[]> {
  const behaviours = parseBehaviours(config.mix);
  const players = behaviours.map(({ player }) => player);
  checkPlayers(players, config);
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  const total = behaviours.reduce((sum, { episodes }) => sum + episodes, 0);
  const progress = countProgress(io, "episodes", total);
  try {
    const onTrajectory = progress.onCount;
    const fetching = fetchingOf(io, signal);
    const options = { ...config, environment, behaviours, fetching, signal, onTrajectory };
    return await playBehaviours(options, problems);
  } finally {
    progress.end();
  }
}

/** The trajectories of a recorded run, with the environment from its manifest. */
function ofRun(folder: string, problems: Problems): readonly Trajectory[] {
  const run = openRun(folder, (message) => problems.add(message, folder));
  const { env } = run.manifest.config as { env?: { name?: unknown } };
  const name = typeof env?.name === "string" ? env.name : "unknown";
  const trajectories: Trajectory[] = [];
  let count = 0;
  for (const episode of run.episodes()) {
    const place = `${folder}, episode ${count++}`;
    trajectories.push(...[trajectoryOf(episode, name, place, problems) ?? []].flat());
  }
  if (count === 0) problems.add("the run recorded no episodes", folder);
  return trajectories;
}

/** The trajectories of other programs' agents: conversations with tools, and verifiers' traces. */
function ofTranscripts(path: string, problems: Problems): readonly Trajectory[] {
  const name = /^[a-z]+/.exec(basename(path))?.[0] ?? "imported";
  return readTranscripts(path, problems.add).flatMap((transcript, at) => {
    const { env = name, where } = transcript;
    return trajectoryOf(transcriptEpisode(transcript, at), env, where, problems) ?? [];
  });
}

function statisticsTable(data: DataSet): readonly string[] {
  const rows = (["train", "test"] as const).flatMap((part) =>
    Object.entries(statisticsOf(data[part])).map(([env, some]) => [
      env,
      part,
      number(some.trajectories),
      number(some.tasks),
      number(some.turns),
      percent(some.successes / some.trajectories),
      percent(some.withContext / some.trajectories),
      number(some.meanResponseWords, 1),
    ]),
  );
  const header = ["environment", "part", "trajectories", "tasks", "turns", "success"];
  return table([...header, "with context", "words"], rows);
}

/** What was left out, a line for each kind of problem. */
function problemLines({ counts }: Problems): readonly string[] {
  return [...counts].map(([kind, count]) => `left out ${number(count)}: ${kind}`);
}
