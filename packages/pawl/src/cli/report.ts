import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { lostEpisodes, lostMetrics } from "@pawl/core/runs/check-run.js";
import { requireSeals } from "@pawl/core/runs/checksums.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { leftOutNotice } from "@pawl/core/trust/secret-settings.js";
import { openSavedModel } from "@pawl/training/open-model.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { findSavedModel, REFERENCE } from "@pawl/training/saved-model.js";
import { type ReportGroup, reportPage } from "@pawl/ui/report/page.js";
import { predictObservations } from "@pawl/ui/report/predictions.js";
import { groupRuns, type ReportRun, type RunGroup, reportRun } from "@pawl/ui/report/run-groups.js";
import { type SampledEpisode, sampleEpisodes } from "@pawl/ui/report/sampled-episodes.js";
import { WORLD_RUN } from "@pawl/worldmodel/saved.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { type Io, print, warn } from "./io.js";
import { runRecipe } from "./run-recipe.js";

// Opens a file with the program that the desktop has for it.

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Resolves to whether it could be opened; the program outlives us. */
export function openFile(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const [command, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  return new Promise((done) => {
    const child = spawn(command!, [...args, resolve(path)], {
      ...{ detached: true, stdio: "ignore" },
      env: { ...env },
    });
    child.once("error", () => done(false));
    child.once("spawn", () => {
      child.unref();
      done(true);
    });
  });
}

/** `pawl report`: training runs as one HTML file. */
export const report = defineCommand({
  name: "report",
  summary: "write an HTML report that compares training runs",
  positionals: "RUN…",
  details:
    "Curves with several runs overlaid (mean and spread over seeds); for pawl train also the last evaluations, episodes,\nand predicted observations before and after RL. The file needs no network.",
  options: () =>
    z.strictObject({
      out: z.string().default("report.html").describe("output file"),
      open: z.boolean().default(false).describe("open the file in the browser"),
      predictions: z
        .boolean()
        .optional()
        .describe(
          "let the first run of each group predict observation tokens (default: if its engine is the embedded one)",
        ),
    }),
  examples: [
    ["pawl report runs/…", "one run"],
    ["pawl report runs/a-* runs/b-* --out compare.html", "two settings, several seeds each"],
    ["pawl report runs/… --no-predictions --open", "without asking its checkpoint, in the browser"],
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
      const recipe = runRecipe(recorded.manifest);
      // Other kinds of training have no groups of episodes to read or predict.
      if (recorded.manifest.kind !== "train") {
        groups.push({ ...group, episodes: [] });
        continue;
      }
      const seen = new Set<number>();
      const all = notingGroups(recorded.episodes(), seen);
      const episodes = sampleEpisodes(all, trainConfigOf(folder).groups);
      const lost = lostEpisodes(recorded, seen, group.runs[0]!.metrics);
      if (lost !== undefined) warn(io, `${folder}: ${lost}`);
      const asked = await predicted(group, episodes, config.predictions, io);
      groups.push({ ...group, recipe, episodes, ...asked });
    }
    writeSmallFile(config.out, reportPage(groups));
    print(io, `wrote ${config.out}`);
    if (config.open && !(await openFile(config.out, io.env)))
      warn(io, `there is no browser to open ${config.out} with here`);
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
  const leftOut = leftOutNotice(folder, run.manifest.config);
  if (leftOut !== undefined) warn(io, leftOut);
  const read = reportRun(run);
  if (read.metrics.length === 0) warn(io, `${folder} has no metrics yet`);
  const lost = lostMetrics(run, read.metrics);
  if (lost !== undefined) warn(io, `${folder}: ${lost}`);
  return read;
}

/** The episodes, whose groups are noted as they pass. */
function* notingGroups(episodes: Iterable<Episode>, groups: Set<number>): Generator<Episode> {
  for (const episode of episodes) {
    groups.add(episode.group);
    yield episode;
  }
}

/** The predictions of a group's first run, or why there are none. */
async function predicted(
  group: RunGroup,
  episodes: readonly SampledEpisode[],
  wanted: boolean | undefined,
  io: Io,
): Promise<Pick<ReportGroup, "predictions" | "unpredicted">> {
  if (wanted === true) return { predictions: await predict(group, episodes) };
  if (wanted === false) return { unpredicted: "They were left out with --no-predictions." };
  const { engine } = trainConfigOf(group.runs[0]!.folder);
  if (engine.address !== "embedded")
    return {
      unpredicted: `The run computes on ${engine.address}: --predictions asks the server.`,
    };
  try {
    return { predictions: await predict(group, episodes) };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const unpredicted = `Its checkpoint cannot be asked: ${error.message}`;
    warn(io, `${group.runs[0]!.folder}: there are no predictions. ${unpredicted}`);
    return { unpredicted };
  }
}

async function predict(
  group: RunGroup,
  episodes: readonly SampledEpisode[],
): Promise<NonNullable<ReportGroup["predictions"]>> {
  const { folder } = group.runs[0]!;
  const { paw } = trainConfigOf(folder);
  const saved = findSavedModel(folder);
  requireSeals(join(folder, REFERENCE), "Restore it.");
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
