import { ConfigError } from "@pawl/core/config/config-error.js";
import { plainText } from "@pawl/core/plain-text.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { createTally } from "@pawl/core/rollout/tally.js";
import { lostEpisodes, lostMetrics, unreadableCheckpoints } from "@pawl/core/runs/check-run.js";
import { openRun, type RecordedRun } from "@pawl/core/runs/run-folder.js";
import { promptText } from "@pawl/core/text/prompt.js";
import { z } from "zod";
import { exactly } from "../exports/spoken.js";
import type { Colours } from "./colours.js";
import { defineCommand, exitCodes } from "./command.js";
import { tallyTable, tokensText } from "./evaluation-table.js";
import { duration, percent } from "./format.js";
import { type Io, print, warn } from "./io.js";
import { factsOf, headlineText, type RunFacts } from "./run-facts.js";

/** How an episode ended, in a word. */
function outcome(episode: Episode): "broken" | "solved" | "failed" {
  if (episode.stop === "broken") return "broken";
  return episode.success ? "solved" : "failed";
}

/** A one-line summary of an episode. */
function episodeLine(episode: Episode, colors: Colours): string {
  const { green, red, yellow } = colors;
  const sign = { solved: green("✓"), failed: red("✗"), broken: yellow("!") }[outcome(episode)];
  const id = `${episode.group}.${episode.attempt}`;
  return `${sign} ${id.padEnd(7)} ${plainText(episode.task.type).padEnd(10)} ${plainText(episode.task.id).padEnd(18)} ${String(episode.steps.length).padStart(3)} steps  return ${episode.return}`;
}

/** The whole episode: goal, observations and actions, and how it ended. */
function episodeText(recorded: Episode, colors: Colours, options: { full: boolean }): string[] {
  // Everything in it was written by a world or a model.
  const episode = plainStrings(recorded);
  const { bold, dim, cyan, green, red, yellow } = colors;
  const paint = { solved: green, failed: red, broken: yellow }[outcome(episode)];
  const lines = [
    `${bold(`episode ${episode.group}.${episode.attempt}`)}  ${episode.task.type} ${episode.task.id}  ${dim(`policy ${episode.policy}, seed ${episode.seed}`)}`,
    `${dim("goal")}  ${bold(episode.goal)}`,
    ...(episode.given === undefined ? [] : [`${dim("task")}  ${valueText(episode.given)}`]),
    // An agent sees what its program shows the model.
    ...(episode.firstObservation === ""
      ? []
      : [`${dim("sees")}  ${indent(episode.firstObservation)}`]),
    ...beginningLines(episode).map(dim),
  ];
  for (const [index, step] of episode.steps.entries()) {
    if (options.full) lines.push(dim(indent(`      ${promptText(step.prompt)}`)));
    lines.push(
      `${dim(String(index + 1).padStart(4))}  ${cyan(`> ${step.action}`)}${remarks(step, colors)}${dim(costOf(step))}`,
    );
    if (options.full) lines.push(dim(`      ${indent(step.response.trim())}`));
    lines.push(...candidateLines(step, colors));
    lines.push(`      ${indent(step.observation)}`);
  }
  if (episode.result !== undefined)
    lines.push(`${dim("returned")}  ${indent(valueText(episode.result))}`);
  const why = {
    done: episode.error === undefined ? "" : `: ${episode.error}`,
    "step-limit": " at the step limit",
    stuck: " after too many invalid actions in a row",
    "context-limit": " at the context limit",
    broken: `: ${episode.error}`,
  };
  lines.push(
    paint(bold(`${outcome(episode)}${why[episode.stop]}`)) +
      dim(`  after ${episode.steps.length} steps, return ${episode.return}`),
  );
  if (episode.why !== undefined) lines.push(`${dim("why")}  ${indent(episode.why)}`);
  const tally = createTally();
  tally.add(recorded);
  const sampled = tokensText(tally, sequencesOf(recorded));
  if (sampled !== undefined) lines.push(`${dim("tokens")}  ${sampled}`);
  return lines;
}

/** Whose the steps are that were not played for this episode. */
function beginningLines({ hint = 0, branch }: Episode): readonly string[] {
  const steps = (from: number, to: number): string =>
    from === to ? `step ${to}` : `steps ${from} to ${to}`;
  return [
    ...(hint > 0 ? [`a teacher took ${steps(1, hint)}`] : []),
    ...(branch ? [`attempt ${branch.from} took ${steps(hint + 1, branch.step)}`] : []),
  ];
}

const valueText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value);

/** What an agent's call cost. */
function costOf({ seconds, sequence }: Step): string {
  if (seconds === undefined || sequence === undefined) return "";
  const lengthOf = (kind: string) =>
    sequence.spans.reduce((sum, one) => sum + (one.kind === kind ? one.end - one.start : 0), 0);
  return `  (${lengthOf("prompt")} tokens read, ${lengthOf("action")} written, ${seconds.toFixed(1)} s)`;
}

/** How many sequences the steps of an episode are: one goes on while it reads what was written. */
const sequencesOf = ({ steps }: Episode): number =>
  steps.filter((step, at) => at === 0 || !exactly(steps[at - 1]!, step)).length;

function plainStrings<T>(value: T): T {
  if (typeof value === "string") return plainText(value) as T;
  if (Array.isArray(value)) return value.map(plainStrings) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, plainStrings(inner)]),
  ) as T;
}

function remarks(step: Step, { red, green }: Colours): string {
  const invalid = step.valid
    ? ""
    : red(`  (${step.wellFormed ? "refused" : step.cut ? "truncated" : "malformed"})`);
  return `${invalid}${step.reward === 0 ? "" : green(`  reward ${step.reward}`)}`;
}

/** What the action was chosen from, with what each was predicted to bring; none if all were the same. */
function candidateLines({ candidates = [] }: Step, { dim, red }: Colours): readonly string[] {
  if (candidates.length < 2) return [];
  return candidates.map(({ action, votes, predicted, refused, truth, chosen }) => {
    const chance = refused === undefined ? "" : `  refused ${percent(refused)}`;
    const said = predicted === undefined ? "" : `: ${indent(predicted)}`;
    const wrong = truth !== undefined && !truth.valid ? red("  (refused)") : "";
    return dim(`      ${chosen ? "→" : " "} ${votes} × ${action}${chance}${said}`) + wrong;
  });
}

/** Indents the lines after the first. */
const indent = (text: string): string => text.replaceAll("\n", "\n      ");

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
  let sequences = 0;
  // One pass that keeps no episode: a long run does not fit into memory.
  const lines: { readonly group: number; readonly attempt: number; readonly line: string }[] = [];
  for (const episode of run.episodes()) {
    tally.add(episode);
    sequences += sequencesOf(episode);
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
  const sampled = tokensText(tally, sequences);
  if (sampled !== undefined) print(io, `tokens       ${sampled}`);
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
