/** The results of a comparison as Markdown: for people, and for docs/results. */

import type { ArmOnSplit, ArmResult, Compared, ComparisonResults } from "./results.js";
import { LEARNING } from "./run-facts.js";
import { describeSetting } from "./settings.js";
import { aboutStarts, ownerOf, type RecordedStart } from "./starts.js";
import type { Estimate } from "./statistics.js";

/** The name of the file with a setting's curves on a split. */
export const curveFile = (setting: string, split: string): string => `${setting}-${split}.svg`;

/** The same of success in training. */
export const trainingCurveFile = (setting: string): string => `${setting}-in-training.svg`;

/** A section per setting: success, task types, score and steps, the course, learning, and cost. */
export function comparisonMarkdown(results: ComparisonResults): string {
  const settings = [...new Set(results.arms.map(({ setting }) => setting))];
  const { command, machines, collectedAt, seconds, runs, at } = results;
  return [
    "# Learning from observations, compared",
    "",
    `\`${command}\`, ${collectedAt.slice(0, 10)}, pawl ${results.version}, on ${machines.join("; ")}. ${runs.length} runs, ${(seconds / 3600).toFixed(1)} hours of them one after another.${at === undefined ? "" : ` As they were after ${at} updates, by their own evaluations; some may have been cut off later.`}`,
    "",
    `Success and scores in percent. ± is the standard deviation over seeds; intervals are 95 % (Student’s t over seeds); Δ is the mean difference to the same algorithm without world modelling, paired by seed: same tasks, same random draws, and the same start unless the arm names another. ${aboutStarts(results.starts)}`,
    ...settings.flatMap((setting) =>
      section(
        setting,
        results.arms.filter((arm) => arm.setting === setting),
        results.starts.filter((start) => start.setting === setting),
        results,
      ),
    ),
    "",
  ].join("\n");
}

function section(
  setting: string,
  arms: readonly ArmResult[],
  starts: readonly RecordedStart[],
  { runs, ...results }: Pick<ComparisonResults, "goal" | "at" | "runs">,
): readonly string[] {
  const splits = Object.keys(arms[0]!.splits);
  const began = starts.map((one) => {
    const { start, splits: found, phases } = one;
    const parts = Object.entries(found).map(
      ([split, { success }]) => `${percent(success)} on ${split}`,
    );
    const took = phases === undefined ? "" : `, ${phases.training!.toFixed(0)} s of training`;
    return ` Before RL${start === undefined ? "" : ` (${start})`}${ownerOf(one, starts)}: ${parts.join(", ")}${took}.`;
  });
  return [
    "",
    `## ${setting}`,
    "",
    `${describeSetting(setting)}.${began.join("")}`,
    "",
    ...table(
      ["arm", "seeds", ...splits.flatMap((split) => [split, "95 %", "Δ", "95 % of Δ"])],
      arms.map(({ arm, seeds, splits: found }) => [
        arm,
        seeds.join(" "),
        ...splits.flatMap((split) => comparedCells(found[split])),
      ]),
    ),
    ...bySeed(splits, arms, runs),
    ...splits.flatMap((split) => families(split, arms)),
    ...splits.flatMap((split) => scores(split, arms)),
    ...training(setting, arms),
    ...splits.flatMap((split) => course(setting, split, arms, results)),
    ...learning(arms),
    ...cost(arms),
  ];
}

/** The success of single runs; of one seed it is in the table above. */
function bySeed(
  splits: readonly string[],
  arms: readonly ArmResult[],
  runs: ComparisonResults["runs"],
): readonly string[] {
  if (arms.every(({ seeds }) => seeds.length < 2)) return [];
  const cell = ({ setting, arm, seeds }: ArmResult, split: string): string =>
    seeds
      .map((seed) => {
        const run = runs.find(
          (one) => one.setting === setting && one.arm === arm && one.seed === seed,
        );
        const found = run?.splits[split];
        return found === undefined ? "–" : points(found.success);
      })
      .join(", ");
  return [
    "",
    "Success by seed, in the order of the seeds above:",
    "",
    ...table(
      ["arm", ...splits],
      arms.map((arm) => [arm.arm, ...splits.map((split) => cell(arm, split))]),
    ),
  ];
}

/** Success by task type, as the papers' tables have it; types alone would repeat the table above. */
function families(split: string, arms: readonly ArmResult[]): readonly string[] {
  const found = arms.map((arm) => [arm.arm, arm.splits[split]] as const);
  const types = [...new Set(found.flatMap(([, one]) => Object.keys(one?.types ?? {})))];
  if (types.length < 2) return [];
  const rows = (of: (one: ArmOnSplit) => readonly (Estimate | undefined)[]) =>
    found.flatMap(([arm, one]) =>
      one?.types === undefined
        ? []
        : [[arm, ...of(one).map((cell) => (cell ? plusMinus(cell) : ""))]],
    );
  const lines = [
    "",
    `Success on ${split} by task type:`,
    "",
    ...table(
      ["arm", ...types, "all", "mean of types"],
      rows((one) => [...types.map((type) => one.types![type]), one, one.meanOfTypes]),
    ),
  ];
  if (found.every(([, one]) => one?.scoreOfTypes === undefined)) return lines;
  return [
    ...lines,
    "",
    `Score on ${split} by task type:`,
    "",
    ...table(
      ["arm", ...types, "all"],
      rows((one) => [...types.map((type) => one.scoreOfTypes?.[type]), one.score]),
    ),
  ];
}

/** Score beside success, as WebShop reports them, and the steps of an episode. */
function scores(split: string, arms: readonly ArmResult[]): readonly string[] {
  const found = arms.map((arm) => [arm.arm, arm.splits[split]] as const);
  const scored = found.some(([, one]) => one?.score !== undefined);
  if (found.every(([, one]) => one?.steps === undefined)) return [];
  return [
    "",
    `${scored ? "Score, success and steps" : "Steps"} of an episode on ${split}:`,
    "",
    ...table(
      [
        "arm",
        ...(scored ? ["score", "95 %", "Δ", "95 % of Δ", "success"] : []),
        "steps",
        "Δ steps",
      ],
      found.map(([arm, one]) => [
        arm,
        ...(scored ? [...comparedCells(one?.score), one ? plusMinus(one) : ""] : []),
        one?.steps ? plusMinus(one.steps, 1) : "",
        one?.steps?.difference ? signed(one.steps.difference.mean, 1) : "",
      ]),
    ),
  ];
}

/** Success of the episodes that were learnt from, at the temperature of training. */
function training(setting: string, arms: readonly ArmResult[]): readonly string[] {
  const ends = momentsOf(arms.map((arm) => arm.training));
  if (ends.length === 0) return [];
  return [
    "",
    "Success in training, mean of a tenth of the updates and over seeds, by the last of them:",
    "",
    ...table(
      ["updates", ...ends.map(String)],
      arms.map((arm) => [arm.arm, ...meansAt(arm.training, ends)]),
    ),
    "",
    `![success in training](${trainingCurveFile(setting)})`,
  ];
}

function course(
  setting: string,
  split: string,
  arms: readonly ArmResult[],
  { goal, at }: Pick<ComparisonResults, "goal" | "at">,
): readonly string[] {
  const moments = momentsOf(arms.map((arm) => arm.course[split] ?? {}));
  if (moments.length === 0) return [];
  return [
    "",
    `${split} during training, mean over seeds${at === undefined ? " (fewer tasks than above)" : ""}, and each seed's updates to ${percent(goal, 0)} (– if no evaluation reached it):`,
    "",
    ...table(
      ["updates", ...moments.map(String), `to ${percent(goal, 0)}`],
      arms.map((arm) => [
        arm.arm,
        ...meansAt(arm.course[split] ?? {}, moments),
        Object.values(arm.updatesToGoal[split] ?? {})
          .map((updates) => updates ?? "–")
          .join(" "),
      ]),
    ),
    "",
    `![${split} during training](${curveFile(setting, split)})`,
  ];
}

type Moments = Readonly<Record<number, Estimate>>;

const momentsOf = (courses: readonly Moments[]): readonly number[] =>
  [...new Set(courses.flatMap((one) => Object.keys(one).map(Number)))].sort((a, b) => a - b);

const meansAt = (course: Moments, moments: readonly number[]): readonly string[] =>
  moments.map((moment) => (course[moment] === undefined ? "" : points(course[moment].mean)));

/** Entropy, gradients and what the model knows of observations, at the beginning and the end. */
function learning(arms: readonly ArmResult[]): readonly string[] {
  const names = Object.keys(LEARNING).filter((name) =>
    arms.some((arm) => arm.learning[name] !== undefined),
  );
  if (names.length === 0) return [];
  return [
    "",
    "From the first to the last tenth of training, mean over seeds:",
    "",
    ...table(
      ["arm", ...names.map((name) => LEARNING[name]!)],
      arms.map(({ arm, learning: found }) => [
        arm,
        ...names.map((name) => {
          const one = found[name];
          return one === undefined ? "" : `${digits(one.begin)} → ${digits(one.end)}`;
        }),
      ]),
    ),
  ];
}

/** Time and memory: an update by phase, and a whole run. */
function cost(arms: readonly ArmResult[]): readonly string[] {
  const keys = (of: (arm: ArmResult) => object): readonly string[] => [
    ...new Set(arms.flatMap((arm) => Object.keys(of(arm)))),
  ];
  const phases = keys((arm) => arm.secondsPerUpdate);
  const memory = keys((arm) => arm.memory);
  // A run that was cut off has no such sums.
  const whole = ["training", "evaluation"].filter((name) =>
    arms.some((arm) => arm.phases[name] !== undefined),
  );
  if (phases.length + memory.length === 0) return [];
  return [
    "",
    `Seconds of an update by phase (median)${whole.length === 0 ? " and largest memory" : ", largest memory, and seconds of a run in the call that finished it"}; means over seeds:`,
    "",
    ...table(
      ["arm", ...phases, ...memory.map((name) => `memory, ${name}`), ...whole],
      arms.map((arm) => [
        arm.arm,
        ...phases.map((name) => arm.secondsPerUpdate[name]?.toFixed(2) ?? ""),
        ...memory.map((name) => arm.memory[name]?.toFixed(0) ?? ""),
        ...whole.map((name) => arm.phases[name]?.toFixed(0) ?? ""),
      ]),
    ),
  ];
}

function comparedCells(result: Compared | undefined): readonly string[] {
  if (result === undefined) return ["", "", "", ""];
  const { difference } = result;
  return [
    plusMinus(result),
    interval(result),
    difference === undefined ? "" : signed(difference.mean),
    difference === undefined ? "" : `${interval(difference)} (n ${difference.n})`,
  ];
}

const points = (share: number, unit = 100): string => (unit * share).toFixed(1);
const percent = (share: number, places = 1): string => `${(100 * share).toFixed(places)} %`;
const signed = (value: number, unit = 100): string =>
  `${value < 0 ? "−" : "+"}${points(Math.abs(value), unit)}`;
const digits = (value: number): string => String(Number(value.toPrecision(3))).replace("-", "−");

function plusMinus({ mean, deviation }: Estimate, unit = 100): string {
  const middle = points(mean, unit);
  return deviation === undefined ? middle : `${middle} ± ${points(deviation, unit)}`;
}

function interval({ interval: range }: Estimate): string {
  if (range === undefined) return "–";
  return range.map((end) => `${end < 0 ? "−" : ""}${points(Math.abs(end))}`).join(" to ");
}

/** A table in Markdown, with aligned columns. */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const widths = header.map((_, i) =>
    Math.max(3, ...[header, ...rows].map((row) => row[i]!.length)),
  );
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(header), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)];
}
