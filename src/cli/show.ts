import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import type { Episode } from "../rollout/episode.js";
import { createTally } from "../rollout/tally.js";
import { openRun, type RecordedRun } from "../runs/run-folder.js";
import { defineCommand, exitCodes } from "./command.js";
import { episodeLine, episodeText, outcome } from "./episode-view.js";
import { type Io, print, warn } from "./io.js";
import { tallyTable } from "./tally-table.js";

const LISTED = 20;

/** `pawl show`: a run, or one of its episodes, in readable form. */
export const show = defineCommand({
  name: "show",
  summary: "show a run, or one of its episodes",
  plugins: "none",
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

function showRun(run: RecordedRun, options: { json: boolean; all: boolean }, io: Io): number {
  if (options.json) {
    for (const episode of run.episodes()) print(io, JSON.stringify(episode));
    return exitCodes.done;
  }
  const { bold, dim } = io.colors;
  const { manifest } = run;
  const episodes = [...run.episodes()].sort((a, b) => a.group - b.group || a.attempt - b.attempt);
  const tally = createTally();
  for (const episode of episodes) tally.add(episode);
  print(io, `${bold(run.folder)}  ${manifest.kind}, ${manifest.status}${run.active ? " now" : ""}`);
  print(
    io,
    dim(`started ${manifest.createdAt}, seed ${manifest.seed}, pawl ${manifest.versions.pawl}`),
  );
  if (manifest.error !== undefined) print(io, io.colors.red(manifest.error));
  print(io);
  for (const line of tallyTable(tally)) print(io, line);
  print(io);
  const listed = options.all ? episodes : episodes.slice(0, LISTED);
  for (const episode of listed) print(io, episodeLine(episode, io.colors));
  if (listed.length < episodes.length)
    print(io, dim(`… ${episodes.length - listed.length} more: --all`));
  return exitCodes.done;
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
