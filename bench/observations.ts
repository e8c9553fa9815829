/**
 * The table and the figure of docs/results/observations.md, from what the runs of all comparisons solved
 * (bench/observations.json).
 *
 *   npm run bench -- observations            prints the table, and that of the log
 *   npm run bench -- observations --write    writes it into the page, and the figure beside it
 */
import { readFileSync, writeFileSync } from "node:fs";
import { table } from "@pawl/studies/markdown.js";
import { type Estimate, estimate, pairedDifference, pooled } from "@pawl/studies/statistics.js";
import { type ForestRow, forestSvg } from "./shared/forest-svg.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/observations.md";
export const FIGURE = "docs/images/observations-forest.svg";
const DATA = "bench/observations.json";
/** What stands around what the command writes. */
const MARKS = ["<!-- npm run bench -- observations --write -->", "<!-- end -->"] as const;

interface SplitRuns {
  /** Success of the start, in percent. */
  readonly start?: number;
  /** Tasks that each seed's run solved, by arm; null where there is no run. */
  readonly solved?: Readonly<Record<string, readonly (number | null)[]>>;
  /** What was printed, in percent and points, where the runs themselves are no longer there. */
  readonly means?: Readonly<Record<string, { readonly mean: number; readonly deviation?: number }>>;
  readonly differences?: Readonly<Record<string, Estimate>>;
}

interface Comparison {
  readonly id: string;
  readonly start: keyof typeof STARTS;
  readonly algorithm: string;
  readonly updates: number;
  readonly date: string;
  readonly splits: Readonly<Record<string, SplitRuns>>;
}

interface Study {
  readonly tasks: Readonly<Record<string, number>>;
  readonly comparisons: readonly Comparison[];
}

const STARTS = {
  actions: "imitated actions",
  observations: "imitated actions, learnt observations",
  sparse: "hardly imitated",
  webshop: "WebShop, imitated actions",
} as const;
const ARMS = { paw: "PaW", echo: "ECHO", margin: "`margin`", "ce-length": "`ce-length`" } as const;

/** What an arm adds in one comparison. */
interface Contrast {
  readonly comparison: Comparison;
  readonly arm: keyof typeof ARMS;
  /** The split that matters: rooms that were not seen, or WebShop's only one. */
  readonly main: Measured;
  readonly seen: Measured | undefined;
}

interface Measured {
  readonly start: number | undefined;
  /** Mean success without the arm, in percent. */
  readonly alone: number | undefined;
  readonly difference: Estimate;
}

export function readStudy(): Study {
  return JSON.parse(readFileSync(DATA, "utf8")) as Study;
}

function measured(
  { start, solved, means, differences }: SplitRuns,
  [alone, arm]: readonly [alone: string, arm: string],
  tasks: number,
): Measured | undefined {
  const shares = (name: string): ReadonlyMap<number, number> =>
    new Map(
      (solved?.[name] ?? []).flatMap((count, seed) =>
        count === null ? [] : [[seed, (100 * count) / tasks] as const],
      ),
    );
  const difference = differences?.[arm] ?? pairedDifference(shares(arm), shares(alone));
  if (difference === undefined) return undefined;
  const own = [...shares(alone).values()];
  return {
    start,
    alone: own.length > 0 ? estimate(own).mean : means?.[alone]?.mean,
    difference,
  };
}

/** All contrasts, in the order of the comparisons. */
export function contrastsOf({ comparisons, tasks }: Study): readonly Contrast[] {
  return comparisons.flatMap((comparison) =>
    (Object.keys(ARMS) as (keyof typeof ARMS)[]).flatMap((arm): readonly Contrast[] => {
      const { algorithm, splits } = comparison;
      const on = (split: string): Measured | undefined =>
        splits[split] && measured(splits[split], [algorithm, `${algorithm}+${arm}`], tasks[split]!);
      const main = on("valid_unseen") ?? on("test");
      return main === undefined ? [] : [{ comparison, arm, main, seen: on("valid_seen") }];
    }),
  );
}

const number = (value: number): string => value.toFixed(1).replace("-", "−");
const signed = (value: number): string => `${value > 0 ? "+" : ""}${number(value)}`;
/** An interval of two seeds says nothing. */
const intervalOf = ({ interval, n }: Estimate): Estimate["interval"] =>
  n < 3 ? undefined : interval;
const points = (one: Estimate, unit = "seeds"): string =>
  `${signed(one.mean)} (${intervalOf(one)?.map(number).join(" to ") ?? `${one.n} ${unit}`})`;

function successOf({ start, alone }: Measured): string {
  const from = start === undefined ? "" : `${number(start)} → `;
  return alone === undefined ? "" : `${from}${number(alone)} %`;
}

/** The page's table. */
export function contrastTable(study: Study): readonly string[] {
  const contrasts = contrastsOf(study);
  return table(
    ["start", "updates", "RL alone, unseen", "adds", "unseen rooms", "seen rooms"],
    [
      ...contrasts.map(({ comparison: { start, updates, algorithm }, arm, main, seen }) => [
        STARTS[start],
        String(updates),
        `${successOf(main)}${algorithm === "grpo" ? "" : " (GiGPO)"}`,
        ARMS[arm],
        points(main.difference),
        seen === undefined ? "" : points(seen.difference),
      ]),
      ...(Object.keys(ARMS) as (keyof typeof ARMS)[]).map((arm) => {
        const own = contrasts.filter((one) => one.arm === arm && isPooled(one.comparison));
        const all = pooledOf(own.map(({ main }) => main.difference));
        const seen = pooledOf(own.map((one) => one.seen!.difference));
        return [
          "both starts, GRPO",
          "all",
          `${all.n} pairs`,
          ARMS[arm],
          points(all, "pairs"),
          points(seen, "pairs"),
        ];
      }),
    ],
  );
}

const isPooled = ({ algorithm, start }: Comparison): boolean =>
  algorithm === "grpo" && (start === "actions" || start === "observations");

/** Pairs of several comparisons together; an interval needs the deviation of each. */
function pooledOf(parts: readonly Estimate[]): Estimate {
  const known = parts.map(withDeviation);
  const { interval, ...all } = pooled(known);
  const isWhole = known.every(({ n, deviation }) => n < 2 || deviation !== undefined);
  return { ...all, ...(isWhole && interval !== undefined && { interval }) };
}

/** The deviation that follows from an interval of three seeds. */
function withDeviation(one: Estimate): Estimate {
  if (one.deviation !== undefined || one.interval === undefined) return one;
  const unit = estimate([-1, 0, 1]).interval![1];
  return { ...one, deviation: (one.interval[1] - one.interval[0]) / 2 / unit };
}

/** In how many contrasts seen rooms come off better, and by how much with PaW. */
export function patternOf(study: Study): string {
  const both = contrastsOf(study).flatMap(({ arm, main, seen }) =>
    seen === undefined ? [] : [{ arm, unseen: main.difference.mean, seen: seen.difference.mean }],
  );
  const tenths = (value: number): number => Math.round(10 * value);
  const better = both.filter(({ seen, unseen }) => tenths(seen) > tenths(unseen)).length;
  const equal = both.filter(({ seen, unseen }) => tenths(seen) === tenths(unseen)).length;
  const paw = both.filter(({ arm }) => arm === "paw");
  const mean = (of: (one: (typeof both)[number]) => number): string =>
    signed(estimate(paw.map(of)).mean);
  return `In ${better} of ${both.length} contrasts on ALFWorld the difference is better on seen rooms than on unseen ones, in ${equal} equal; with PaW it is ${mean(({ seen }) => seen)} and ${mean(({ unseen }) => unseen)} points, mean of ${paw.length} comparisons.`;
}

/** The log's table: pairs of GRPO runs by how long and from what they were trained. */
export function pairsTable(study: Study): readonly string[] {
  const ofActions = ({ start }: Comparison): boolean => start === "actions";
  const rows: readonly (readonly [string, (comparison: Comparison) => boolean])[] = [
    ["the start that imitated actions only", ofActions],
    ["of these, 70 and 100 updates", (one) => ofActions(one) && [70, 100].includes(one.updates)],
    ["both starts", () => true],
  ];
  const contrasts = contrastsOf(study).filter(({ comparison }) => isPooled(comparison));
  return table(
    ["from", ...Object.values(ARMS)],
    rows.map(([name, has]) => [
      name,
      ...Object.keys(ARMS).map((arm) => {
        const own = contrasts.filter((one) => one.arm === arm && has(one.comparison));
        const all = pooledOf(own.map(({ main }) => main.difference));
        return `${points(all).replace(/\)$/, "")}, ${all.n} pairs)`;
      }),
    ]),
  );
}

/** The figure. */
export function forest(study: Study): string {
  const rows = contrastsOf(study).map(
    ({ comparison: { start, updates, algorithm }, arm, main, seen }): ForestRow => ({
      label: `${ARMS[arm].replaceAll("`", "")}, ${updates} updates${algorithm === "grpo" ? "" : ", GiGPO"}`,
      group: STARTS[start],
      estimates: [main.difference, seen?.difference].map(
        (one) => one && { ...one, interval: intervalOf(one) },
      ),
    }),
  );
  return forestSvg("Points of success that learning observations adds (95 % intervals)", rows, [
    "unseen rooms (WebShop: test goals)",
    "seen rooms",
  ]);
}

/** What the command writes into the page. */
export function writtenPart(study: Study): string {
  return [
    MARKS[0],
    "",
    ...contrastTable(study),
    "",
    ...wrapped(patternOf(study)),
    "",
    MARKS[1],
  ].join("\n");
}

function wrapped(text: string): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trim();
    if (lines.length === 0 || longer.length > 100) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

export function main(args: readonly string[] = []): object {
  const study = readStudy();
  if (args.includes("--write")) {
    writePart(PAGE, MARKS, writtenPart(study));
    writeFileSync(FIGURE, forest(study));
  } else process.stdout.write(`${writtenPart(study)}\n\n${pairsTable(study).join("\n")}\n`);
  return { contrasts: contrastsOf(study).length };
}
