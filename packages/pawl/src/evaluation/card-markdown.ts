/** A result card for people: what a paper or a model page can quote. */
import type { Card, Figures } from "./card.js";

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

const share = (value: number | undefined): string =>
  value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;

const range = (interval: readonly [number, number] | undefined): string =>
  interval === undefined ? "–" : `${(100 * interval[0]).toFixed(1)} – ${share(interval[1])}`;

/** A code span; a text with a backtick gets longer fences. */
function code(text: string): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}
