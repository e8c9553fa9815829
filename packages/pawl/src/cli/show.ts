import { ConfigError } from "@pawl/core/config/config-error.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { createTally } from "@pawl/core/rollout/tally.js";
import { lostEpisodes, lostMetrics, unreadableCheckpoints } from "@pawl/core/runs/missing-parts.js";
import { openRun, type RecordedRun } from "@pawl/core/runs/run-folder.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { episodeLine, episodeText, outcome } from "./episode-view.js";
import { tallyTable } from "./evaluation-table.js";
import { duration, percent } from "./format.js";
import { type Io, print, warn } from "./io.js";
import { factsOf, headlineText, type RunFacts } from "./run-facts.js";

const LISTED = 20;

/** `pawl show`: a run, or one of its episodes, in readable form. */
export const show = defineCommand({
  name: "show",
  summary: "show a run, or one of its episodes",
  plugins: "none",
  worlds: "none",
  positionals: "RUN [EPISODE]",
  details:
    "EPISODE is group.attempt as in the list, or `solved`, `failed`, `broken` for the first of that kind.",
  options: () =>
    z.strictObject({
      full: z.boolean().default(false).describe("show prompt and response of each step"),
      json: z.boolean().default(false).describe("print the record as JSON"),
      all: z.boolean().default(false).describe("list all episodes, not only the first ones"),
    }),
  examples: [
    ["pawl show runs/2026-…-rollout-household", "results by task type, and the episodes"],
    ["pawl show RUN 0.3", "attempt 3 of group 0, step by step"],
    ["pawl show RUN failed --full", "the first failure, with prompts and responses"],
  ],
  async run({ config, positionals, io }) {
    const [folder, which] = positionals;
    if (folder === undefined)
      throw new ConfigError("pawl show needs a run folder: pawl show RUN. pawl runs lists them.");
    const run = openRun(folder, (message) => warn(io, message));
    if (which === undefined) return showRun(run, config, io);
    const episode = find(run, which);
    if (config.json) print(io, JSON.stringify(episode, undefined, 2));
    else for (const line of episodeText(episode, io.colors, config)) print(io, line);
    return exitCodes.done;
  },
});

async function showRun(
  run: RecordedRun,
  options: { json: boolean; all: boolean },
  io: Io,
): Promise<number> {
  if (options.json) {
    for (const episode of run.episodes()) print(io, JSON.stringify(episode));
    return exitCodes.done;
  }
  const { bold, dim } = io.colors;
  const { manifest } = run;
  const tally = createTally();
  // One pass that keeps no episode: a long run does not fit into memory.
  const lines: { readonly group: number; readonly attempt: number; readonly line: string }[] = [];
  for (const episode of run.episodes()) {
    tally.add(episode);
    const { group, attempt } = episode;
    lines.push({ group, attempt, line: episodeLine(episode, io.colors) });
  }
  const groups = new Set(lines.map(({ group }) => group));
  const metrics = openRun(run.folder, () => undefined).metrics();
  const lost = [lostMetrics(run, metrics), lostEpisodes(run, groups, metrics)];
  for (const message of lost) if (message !== undefined) warn(io, `${run.folder}: ${message}`);
  for (const message of unreadableCheckpoints(run.folder)) warn(io, message);
  lines.sort((a, b) => a.group - b.group || a.attempt - b.attempt);
  const facts = factsOf(run);
  print(io, `${bold(run.folder)}  ${manifest.kind}, ${facts.ended}`);
  const took = facts.seconds === undefined ? "" : `, took ${duration(facts.seconds)}`;
  print(
    io,
    dim(
      `started ${manifest.createdAt}${took}, seed ${manifest.seed}, pawl ${manifest.versions.pawl}`,
    ),
  );
  for (const line of factLines(facts)) print(io, line);
  const changed = await changesOf(run);
  if (changed.length > 0) print(io, `settings     ${changed.join("\n             ")}`);
  if (manifest.error !== undefined) print(io, io.colors.red(manifest.error));
  const { stoppedBy } = manifest;
  if (stoppedBy !== undefined)
    print(io, io.colors.yellow(`stopped by the alarm ${stoppedBy.alarm}: ${stoppedBy.text}`));
  print(io);
  for (const line of tallyTable(tally)) print(io, line);
  print(io);
  const listed = options.all ? lines : lines.slice(0, LISTED);
  for (const { line } of listed) print(io, line);
  if (listed.length < lines.length) print(io, dim(`… ${lines.length - listed.length} more: --all`));
  return exitCodes.done;
}

async function changesOf(run: RecordedRun): Promise<readonly string[]> {
  if (run.manifest.kind !== "train") return [];
  // Recipes need the schemas of training and of its world, which nothing else here does.
  const { changedSettings } = await import("./run-recipe.js");
  return changedSettings(run);
}

function factLines({ environment, model, updates, headline, best }: RunFacts): string[] {
  const lines = [
    ...(environment === undefined ? [] : [`environment  ${environment}`]),
    ...(model === undefined ? [] : [`model        ${model}`]),
    ...(updates === undefined ? [] : [`updates      ${updates.done} of ${updates.all}`]),
  ];
  if (headline === undefined || best === undefined) return lines;
  const when = best.update < 0 ? "before the first update" : `after update ${best.update + 1}`;
  const where = best.folder === undefined ? "" : `: ${best.folder}`;
  return [
    ...lines,
    `evaluation   ${headlineText(headline)} at last, ${percent(best.success)} at best, ${when}${where}`,
  ];
}

function find(run: RecordedRun, which: string): Episode {
  let count = 0;
  for (const episode of run.episodes()) {
    count++;
    if (`${episode.group}.${episode.attempt}` === which || outcome(episode) === which)
      return episode;
  }
  throw new ConfigError(
    `${run.folder} has no episode "${which}" among its ${count}. Give one as group.attempt, such as 0.0, or solved, failed, broken.`,
  );
}
