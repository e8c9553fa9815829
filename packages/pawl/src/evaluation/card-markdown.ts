/** A result card for people: what a paper or a model page can quote. */

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { type Card, CardError, cardSchema, type Figures } from "./card.js";
import { reliabilitySvg } from "./reliability-svg.js";

/** Writes a card beside a run's records: `card.json`, and `card.md` for people. */
export function writeCard(folder: string, card: Card): void {
  writeSmallFile(join(folder, CARD_FILE), `${JSON.stringify(card, undefined, 1)}\n`);
  writeSmallFile(join(folder, "card.md"), cardMarkdown(card));
  const { knowledge } = card.choosing ?? {};
  if (knowledge !== undefined)
    writeSmallFile(
      join(folder, DRAWING),
      reliabilitySvg(
        "Predictions and what came",
        PREDICTIONS.map(([title, of]) => ({
          title,
          series: [{ label: card.player, bins: knowledge[of] }],
        })),
      ),
    );
}

const DRAWING = "reliability.svg";
/** What was predicted of candidates. */
const PREDICTIONS = [
  ["that an action is refused", "bins"],
  ["the answer, word for word", "answers"],
] as const;

const CARD_FILE = "card.json";

/** Reads a card by the folder of an evaluation or by its file. */
export function readCard(path: string): Card {
  if (!existsSync(path))
    throw new CardError(`${path} does not exist: expected a run folder of pawl eval, or a card`);
  const file = statSync(path).isDirectory() ? join(path, CARD_FILE) : path;
  if (!existsSync(file))
    throw new CardError(
      `${path} has no ${CARD_FILE}: expected a run of pawl eval that has ended; evaluate again to get one`,
    );
  let json: unknown;
  try {
    json = JSON.parse(readRegularText(file));
  } catch (error) {
    throw new CardError(`${file} is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = cardSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CardError(
    `${file} is no result card of this version: ${issue!.path.join(".")}: ${issue!.message}`,
  );
}

/** The card as Markdown. */
export function cardMarkdown(card: Card): string {
  const { tasks, results, protocol, versions } = card;
  const lines = [
    `# ${tasks.name}: ${resultText(results)}`,
    "",
    `- evaluated: ${code(card.player)}`,
    `- task list: ${code(tasks.name)}, ${tasks.tasks} tasks, sha256 ${code(tasks.sha256)}`,
    `- intervals: ${card.intervals}`,
    `- broken episodes (in no rate): ${results.broken}`,
    "",
    ...resultTable(card),
    "",
    ...attemptsText(card),
    ...knowledgeText(card),
    "## Protocol",
    "",
    ...Object.entries(protocol).map(([name, value]) => `- ${name}: ${code(JSON.stringify(value))}`),
    "",
    "## Made by",
    "",
    "```sh",
    card.command,
    "```",
    "",
    `${card.createdAt}, ${Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", ")}, ${card.machine}`,
    "",
  ];
  return lines.join("\n");
}

/** Success by task type and overall, as rows of a Markdown table. */
export function resultTable({ results }: Pick<Card, "results">): readonly string[] {
  const rows: [string, Figures][] = [...Object.entries(results.byType), ["**all**", results]];
  const scored = rows.some(([, { score }]) => score !== undefined);
  const head = ["task type", "episodes", "success", "95 % interval", ...(scored ? ["score"] : [])];
  return [
    `| ${[...head, "steps"].join(" | ")} |`,
    `| --- | ${"---: | ".repeat(head.length)}`.trimEnd(),
    ...rows.map(([type, one]) => {
      const score = one.score === undefined ? "–" : (100 * one.score).toFixed(1);
      const cells = [type, one.episodes, share(one.success), range(one.interval)];
      return `| ${[...cells, ...(scored ? [score] : []), one.steps?.toFixed(1) ?? "–"].join(" | ")} |`;
    }),
  ];
}

/** `62.5 % (95 % interval 53.9 – 70.4 %)`, for headings and sentences. */
export function resultText({ success, interval }: Figures): string {
  if (success === undefined) return "nothing was played to its end";
  return `${share(success)} success (95 % interval ${range(interval)})`;
}

function attemptsText({ results: { solvedWithin, passAll } }: Card): readonly string[] {
  if (solvedWithin === undefined) return [];
  const shares = (values: readonly number[]): string => values.map(share).join(", ");
  return [
    `Solved within 1, 2, … attempts: ${shares(solvedWithin)}. Solved in all of 1, 2, … (pass^k): ${shares(passAll ?? [])}.`,
    "",
  ];
}

function knowledgeText({ choosing }: Card): readonly string[] {
  const { knowledge } = choosing ?? {};
  if (knowledge === undefined) return [];
  const { candidates, refused, recall, falseAlarms, brier, brierOfShare, exact } = knowledge;
  return [
    "## Knowledge of its own candidates",
    "",
    `Of ${candidates} candidates ${share(refused)} would have been refused. Foreseen (a chance of one half or more): ${share(recall)} of those, ${share(falseAlarms)} of the others. Brier score ${brier.toFixed(3)} (${brierOfShare.toFixed(3)} by their share alone). Answers predicted word for word: ${share(exact)}.`,
    "",
    `![what came, over what was predicted](${DRAWING})`,
    "",
    ...PREDICTIONS.flatMap(([title, of]) => [
      `| ${title} | candidates | predicted | came |`,
      "| --- | ---: | ---: | ---: |",
      ...knowledge[of].map(
        (bin) =>
          `| ${range([bin.from, bin.from + 0.1])} | ${bin.candidates} | ${share(bin.predicted)} | ${share(bin.happened)} |`,
      ),
      "",
    ]),
  ];
}

const share = (value: number | undefined): string =>
  value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;

const range = (interval: readonly [number, number] | undefined): string =>
  interval === undefined ? "–" : `${(100 * interval[0]).toFixed(1)} – ${share(interval[1])}`;

/** A code span; a text with a backtick gets longer fences. */
function code(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}
