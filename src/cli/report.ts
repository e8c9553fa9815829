import { join } from "node:path";
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { type ReportGroup, reportPage } from "../report/page.js";
import { predictObservations } from "../report/predictions.js";
import { groupRuns, type ReportRun, type RunGroup } from "../report/run-groups.js";
import { type SampledEpisode, sampleEpisodes } from "../report/sampled-episodes.js";
import { RunError } from "../runs/run-error.js";
import { openRun } from "../runs/run-folder.js";
import { writeSmallFile } from "../runs/small-file.js";
import { openSavedModel } from "../train/open-model.js";
import { trainConfigOf } from "../train/recorded-config.js";
import { findSavedModel, REFERENCE } from "../train/saved-model.js";
import { WORLD_RUN } from "../worldmodel/saved.js";
import { defineCommand, exitCodes } from "./command.js";
import { type Io, print, warn } from "./io.js";

/** `pawl report`: training runs as one HTML file. */
export const report = defineCommand({
  name: "report",
  summary: "write an HTML report that compares training runs",
  positionals: "RUN…",
  details:
    "Curves with several runs overlaid (mean and spread over seeds). For pawl train also a table of the last\nevaluations, episodes to read, and with --predictions what the model expects to see, token by token.\nThe file needs no network.",
  options: () =>
    z.strictObject({
      out: z.string().default("report.html").describe("output file"),
      predictions: z
        .boolean()
        .default(false)
        .describe("let the first run of each group predict observation tokens"),
    }),
  examples: [
    ["pawl report runs/…", "one run"],
    ["pawl report runs/a-* runs/b-* --out compare.html", "two settings, several seeds each"],
    ["pawl report runs/… --predictions", "with observation predictions of its checkpoint"],
  ],
  async run({ config, positionals, io, signal }) {
    if (positionals.length === 0)
      throw new ConfigError(
        "pawl report needs a run folder: pawl report RUN…. pawl runs lists them.",
      );
    const runs = positionals.map((folder) => readRun(folder, io));
    const groups: ReportGroup[] = [];
    for (const group of groupRuns(runs)) {
      signal.throwIfAborted();
      const { folder } = group.runs[0]!;
      const recorded = openRun(folder, (message) => warn(io, message));
      // Other kinds of training have no groups of episodes to read or predict.
      if (recorded.manifest.kind !== "train") {
        groups.push({ ...group, episodes: [] });
        continue;
      }
      const episodes = sampleEpisodes(recorded.episodes(), trainConfigOf(folder).groups);
      groups.push({
        ...group,
        episodes,
        ...(config.predictions && { predictions: await predict(group, episodes) }),
      });
    }
    writeSmallFile(config.out, reportPage(groups));
    print(io, `wrote ${config.out}`);
    return exitCodes.done;
  },
});

/** Kinds of runs that have curves. */
const REPORTED: readonly string[] = ["train", "rwml", WORLD_RUN];

function readRun(folder: string, io: Io): ReportRun {
  const run = openRun(folder, (message) => warn(io, message));
  const { kind } = run.manifest;
  if (!REPORTED.includes(kind))
    throw new RunError(
      `${folder} was made by pawl ${kind}: expected a run of pawl train, pawl wm train or pawl rwml`,
    );
  const metrics = run.metrics();
  if (metrics.length === 0) warn(io, `${folder} has no metrics yet`);
  return { folder, manifest: run.manifest, metrics };
}

async function predict(
  group: RunGroup,
  episodes: readonly SampledEpisode[],
): Promise<NonNullable<ReportGroup["predictions"]>> {
  const { folder } = group.runs[0]!;
  const { paw } = trainConfigOf(folder);
  const saved = findSavedModel(folder);
  const { engine, tokenizer } = await openSavedModel(saved);
  try {
    const weights = [
      { name: "before RL", folder: join(folder, REFERENCE) },
      { name: "latest", folder: saved.weights },
    ];
    return { paw, steps: await predictObservations(engine, tokenizer, episodes, weights, paw) };
  } finally {
    await engine.dispose();
  }
}
