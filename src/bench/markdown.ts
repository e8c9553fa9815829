/** The results of a comparison as Markdown: for people, and for docs/results. */
import type { ArmResult, ComparisonResults } from "./results.js";
import type { JobResult } from "./run-job.js";
import { describeSetting } from "./settings.js";
import type { Estimate } from "./statistics.js";

/** A section per setting: the table of final success, and success during training. */
export function comparisonMarkdown(results: ComparisonResults): string {
  const settings = [...new Set(results.arms.map(({ setting }) => setting))];
  const { command, machines, collectedAt, seconds, runs } = results;
  return [
    "# With and without world modelling",
    "",
    `\`${command}\`, ${collectedAt.slice(0, 10)}, pawl ${results.version}, on ${machines.join("; ")}. ${runs.length} runs, ${(seconds / 3600).toFixed(1)} hours of them one after another.`,
    "",
    "Success in percent. ± is the standard deviation over seeds; intervals are 95 % (Student’s t over seeds); Δ is the mean difference to the same algorithm without world modelling, paired by seed: same start, same tasks, same random draws.",
    ...settings.flatMap((setting) =>
      section(
        setting,
        results.arms.filter((arm) => arm.setting === setting),
        results.starts.find((start) => start.setting === setting),
      ),
    ),
    "",
  ].join("\n");
}

function section(
  setting: string,
  arms: readonly ArmResult[],
  start: JobResult | undefined,
): readonly string[] {
  const splits = Object.keys(arms[0]!.splits);
  const began = splits.flatMap((split) => {
    const result = start?.splits[split];
    return result === undefined ? [] : [`${percent(result.success)} on ${split}`];
  });
  return [
    "",
    `## ${setting}`,
    "",
    `${describeSetting(setting)}.${began.length > 0 ? ` Before RL: ${began.join(", ")}.` : ""}`,
    "",
    ...table(
      ["arm", "seeds", ...splits.flatMap((split) => [split, "95 %", "Δ", "95 % of Δ"])],
      arms.map(({ arm, seeds, splits: found }) => [
        arm,
        String(seeds.length),
        ...splits.flatMap((split) => {
          const result = found[split]!;
          const { difference } = result;
          return [
            plusMinus(result),
            interval(result),
            difference === undefined ? "" : signed(difference.mean),
            difference === undefined ? "" : `${interval(difference)} (n ${difference.n})`,
          ];
        }),
      ]),
    ),
    ...splits.flatMap((split) => course(split, arms)),
  ];
}

function course(split: string, arms: readonly ArmResult[]): readonly string[] {
  const moments = [
    ...new Set(arms.flatMap((arm) => Object.keys(arm.course[split] ?? {}).map(Number))),
  ];
  if (moments.length === 0) return [];
  moments.sort((a, b) => a - b);
  return [
    "",
    `${split} during training, mean over seeds (fewer tasks than above):`,
    "",
    ...table(
      ["updates", ...moments.map(String)],
      arms.map((arm) => [
        arm.arm,
        ...moments.map((moment) => {
          const value = arm.course[split]?.[moment];
          return value === undefined ? "" : points(value);
        }),
      ]),
    ),
  ];
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const widths = header.map((_, i) =>
    Math.max(3, ...[header, ...rows].map((row) => row[i]!.length)),
  );
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(header), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)];
}

const points = (share: number): string => (100 * share).toFixed(1);
const percent = (share: number): string => `${points(share)} %`;
const signed = (share: number): string => `${share < 0 ? "−" : "+"}${points(Math.abs(share))}`;

function plusMinus({ mean, deviation }: Estimate): string {
  return deviation === undefined ? points(mean) : `${points(mean)} ± ${points(deviation)}`;
}

function interval({ interval: range }: Estimate): string {
  if (range === undefined) return "–";
  return range.map((end) => `${end < 0 ? "−" : ""}${points(Math.abs(end))}`).join(" to ");
}
