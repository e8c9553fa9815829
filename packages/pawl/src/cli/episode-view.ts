/** An episode in readable form. */

import { plainText } from "@pawl/core/plain-text.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { promptText } from "@pawl/core/text/prompt.js";
import type { Colours } from "./colours.js";

/** How an episode ended, in a word. */
export function outcome(episode: Episode): "broken" | "solved" | "failed" {
  if (episode.stop === "broken") return "broken";
  return episode.success ? "solved" : "failed";
}

/** A one-line summary of an episode. */
export function episodeLine(episode: Episode, colors: Colours): string {
  const { green, red, yellow } = colors;
  const sign = { solved: green("✓"), failed: red("✗"), broken: yellow("!") }[outcome(episode)];
  const id = `${episode.group}.${episode.attempt}`;
  return `${sign} ${id.padEnd(7)} ${plainText(episode.task.type).padEnd(10)} ${plainText(episode.task.id).padEnd(18)} ${String(episode.steps.length).padStart(3)} steps  return ${episode.return}`;
}

/** The whole episode: goal, observations and actions, and how it ended. */
export function episodeText(
  recorded: Episode,
  colors: Colours,
  options: { full: boolean },
): string[] {
  // Everything in it was written by a world or a model.
  const episode = plainStrings(recorded);
  const { bold, dim, cyan, green, red, yellow } = colors;
  const paint = { solved: green, failed: red, broken: yellow }[outcome(episode)];
  const lines = [
    `${bold(`episode ${episode.group}.${episode.attempt}`)}  ${episode.task.type} ${episode.task.id}  ${dim(`policy ${episode.policy}, seed ${episode.seed}`)}`,
    `${dim("goal")}  ${bold(episode.goal)}`,
    // An agent sees what its program shows the model.
    ...(episode.firstObservation === ""
      ? []
      : [`${dim("sees")}  ${indent(episode.firstObservation)}`]),
  ];
  for (const [index, step] of episode.steps.entries()) {
    if (options.full) lines.push(dim(indent(`      ${promptText(step.prompt)}`)));
    lines.push(
      `${dim(String(index + 1).padStart(4))}  ${cyan(`> ${step.action}`)}${remarks(step, colors)}`,
    );
    if (options.full) lines.push(dim(`      ${indent(step.response.trim())}`));
    lines.push(`      ${indent(step.observation)}`);
  }
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
  return lines;
}

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

/** Indents the lines after the first. */
const indent = (text: string): string => text.replaceAll("\n", "\n      ");
