/**
 * The tables of docs/results/regime.md, from what its runs reached (bench/regime.json).
 *
 *   npm run bench -- regime                     prints them
 *   npm run bench -- regime --write             writes them into the page
 *   npm run bench -- regime --read FOLDER       reads what regime-runs wrote into bench/regime.json; runs that were
 *                                               named there (--chosen) join those that are there already
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { table } from "@pawl/studies/markdown.js";
import { type Estimate, estimate } from "@pawl/studies/statistics.js";
import { writePart } from "./shared/page-part.js";
import { ARMS, type Arm, CANDIDATES } from "./shared/regime-plan.js";
import {
  GROUPS,
  type Lease,
  readLease,
  readMore,
  SPLITS,
  type UpdateFacts,
} from "./shared/regime-record.js";

export const PAGE = "docs/results/regime.md";
const DATA = "bench/regime.json";
const MARKS = ["<!-- npm run bench -- regime --write -->", "<!-- end -->"] as const;

/** What a baseline begins with, by the name of its folder. */
const STARTS: Readonly<Record<string, string>> = {
  "none-all": "none",
  none: "none; two easy types, 50 steps",
  "demos-10": "10",
  "demos-25": "25",
  "demos-50": "50",
};

/** Success before RL: tasks solved of those tried, and the share of actions that were not carried out. */
interface Evaluation {
  readonly solved: number;
  readonly tasks: number;
  readonly invalid: number;
  /** Success by type of task. */
  readonly types: Readonly<Record<string, number>>;
}

interface Baseline {
  readonly seed: number;
  readonly start: Readonly<Record<string, Evaluation>>;
  readonly updates: readonly UpdateFacts[];
}

/** What the leases of a GPU came to: the first had baselines alone. */
interface Study {
  readonly first: Readonly<Record<string, Baseline>>;
  readonly pairs?: Lease;
}

export const readStudy = (): Study => JSON.parse(readFileSync(DATA, "utf8")) as Study;

const percent = (share: number): string => (100 * share).toFixed(1);

/** Success of each start, before RL: of the first lease, and of the pairs'. */
export function startsTable({ first, pairs }: Study): readonly string[] {
  const later = Object.entries(pairs?.starts ?? {}).map(([name, splits]) => {
    const once = Object.entries(splits).map(
      ([split, { tasks, solved, invalid }]) =>
        [split, { tasks, solved: solved[0]!, invalid: invalid[0]! }] as const,
    );
    return [name, Object.fromEntries(once)] as const;
  });
  const earlier = Object.entries(first).map(([name, { start }]) => [STARTS[name]!, start] as const);
  return table(
    ["demonstrations", "valid_seen", "valid_unseen", "refused or malformed"],
    [...later, ...earlier].map(([name, start]) => [
      name,
      ...SPLITS.map((split) => {
        const { solved, tasks } = start[split]!;
        return `${percent(solved / tasks)} % (${solved} of ${tasks})`;
      }),
      SPLITS.map((split) => `${percent(start[split]!.invalid)} %`).join(", "),
    ]),
  );
}

/** What each update of the baselines did. */
export function updatesTable({ first }: Study): readonly string[] {
  return table(
    [
      ...[
        "demonstrations",
        "update",
        "success, %",
        `mixed groups of ${GROUPS}`,
        "refused, %",
        "malformed, %",
      ],
      ...["KL to the start", "tokens", "s"],
    ],
    Object.entries(first).flatMap(([name, { updates }]) =>
      updates.map((one, update) => [
        STARTS[name]!,
        String(update + 1),
        percent(one.success),
        String(one.mixed),
        percent(one.refused),
        percent(one.malformed),
        one.kl.toFixed(3),
        one.tokens.toLocaleString("en"),
        one.seconds.toFixed(0),
      ]),
    ),
  );
}

/** Success in training of the candidates, update by update, and where each stood. */
export function candidatesTable({ candidates, standings, chosen }: Lease): readonly string[] {
  return table(
    ["demonstrations", "rate", "the fine", "success by update, %", "gain, points", "KL", "s"],
    Object.entries(candidates).map(([name, updates]) => {
      const { demonstrations, learningRate, penaltyPlace } = CANDIDATES[name]!;
      const { gain, kl } = standings[name]!;
      const seconds = updates.reduce((sum, one) => sum + one.seconds, 0) / updates.length;
      return [
        `${demonstrations}${name === chosen ? " (chosen)" : ""}`,
        learningRate.toExponential(0),
        penaltyPlace,
        updates.map(({ success }) => percent(success)).join(", "),
        signed(gain),
        kl.toFixed(3),
        seconds.toFixed(0),
      ];
    }),
  );
}

const signed = (share: number): string => `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;

const withInterval = ({ mean, interval }: Estimate): string =>
  interval === undefined
    ? signed(mean)
    : `${signed(mean)} (${signed(interval[0])} to ${signed(interval[1])})`;

/** Success of a run on a split, over its rounds. */
function successOf({ runs }: Lease, name: string, split: string): number {
  const { solved, tasks } = runs[name]!.evaluations[split]!;
  return solved.reduce((sum, one) => sum + one, 0) / (solved.length * tasks);
}

const invalidOf = ({ runs }: Lease, name: string, split: string): number =>
  estimate(runs[name]!.evaluations[split]!.invalid).mean;

const bothOf = (lease: Lease, name: string): number =>
  SPLITS.reduce((sum, split) => sum + successOf(lease, name, split), 0) / SPLITS.length;

/** The seeds at which all of these arms are evaluated. */
function seedsOf({ runs }: Lease, arms: readonly Arm[]): readonly string[] {
  const isWhole = (name: string): boolean => Object.keys(runs[name]?.evaluations ?? {}).length > 0;
  const seeds = new Set(Object.keys(runs).map((name) => name.split("-")[1]!));
  return [...seeds].sort().filter((seed) => arms.every((arm) => isWhole(`${arm}-${seed}`)));
}

const ALL = Object.keys(ARMS) as readonly Arm[];
/** What is compared, the first arm less the second. */
const COMPARED = [
  ["paw", "plain"],
  ["shuffled", "plain"],
  ["paw", "shuffled"],
] as const satisfies readonly (readonly [Arm, Arm])[];

/** Success of each run after the same number of updates, and differences paired by seed. */
export function pairsTable(lease: Lease): readonly string[] {
  const on = (split: string) => (name: string) => successOf(lease, name, split);
  const both = (name: string): number => bothOf(lease, name);
  return table(
    ["seed", "arm", ...SPLITS, "mean of both", "refused or malformed"],
    [
      ...seedsOf(lease, []).flatMap((seed) =>
        ALL.filter((arm) => seedsOf(lease, [arm]).includes(seed)).map((arm) => {
          const name = `${arm}-${seed}`;
          return [
            ...[seed, arm, ...SPLITS.map((one) => percent(on(one)(name))), percent(both(name))],
            SPLITS.map((split) => `${percent(invalidOf(lease, name, split))} %`).join(", "),
          ];
        }),
      ),
      ...COMPARED.flatMap(([one, other]) => {
        const seeds = seedsOf(lease, [one, other]);
        const difference = (of: (name: string) => number): string =>
          withInterval(
            estimate(seeds.map((seed) => of(`${one}-${seed}`) - of(`${other}-${seed}`))),
          );
        const row = [
          seeds.join(", "),
          `${one} − ${other}, points`,
          ...SPLITS.map((split) => difference(on(split))),
          difference(both),
          "",
        ];
        return seeds.length === 0 ? [] : [row];
      }),
    ],
  );
}

/** Updates of a row. */
const BLOCK = 4;

/** Arms side by side in training: means of a few updates over the seeds that have them all. */
export function trainingTable(lease: Lease, arms: readonly Arm[]): readonly string[] {
  const seeds = seedsOf(lease, arms);
  const mean = (from: number, of: (one: UpdateFacts) => number, digits: number): string =>
    arms
      .map((arm) =>
        seeds.flatMap((seed) => lease.runs[`${arm}-${seed}`]!.updates.slice(from, from + BLOCK)),
      )
      .map((updates) => estimate(updates.map(of)).mean)
      .map((value) => (Number.isNaN(value) ? "–" : value.toFixed(digits)))
      .join(", ");
  const columns = [`mixed groups of ${GROUPS}`, "refused, %", "KL to the start"];
  if (seeds.length === 0) return [];
  return table(
    [
      `updates of ${arms.join(", ")}; seeds ${seeds.join(", ")}`,
      ...["success, %", ...columns, "p of observations", "s"],
    ],
    Array.from({ length: Math.floor(lease.evaluatedAt / BLOCK) }, (_, row) => row * BLOCK).map(
      (from) => [
        `${from + 1} to ${from + BLOCK}`,
        mean(from, ({ success }) => 100 * success, 1),
        mean(from, ({ mixed }) => mixed, 1),
        mean(from, ({ refused }) => 100 * refused, 1),
        mean(from, ({ kl }) => kl, 3),
        mean(from, ({ observed }) => observed ?? Number.NaN, 2),
        mean(from, ({ seconds }) => seconds, 0),
      ],
    ),
  );
}

/** Attempts of a column. */
const ATTEMPTS = [1, 2, 4, 8, 16];

/** Tasks of valid_unseen that are solved within some attempts. */
export function attemptsTable({ runs }: Lease): readonly string[] {
  const tried = Object.entries(runs).flatMap(([name, { solvedWithin }]) =>
    solvedWithin === undefined ? [] : [[name.replace("-", ", seed "), solvedWithin] as const],
  );
  if (tried.length === 0) return [];
  return table(
    ["solved within so many attempts, %", ...ATTEMPTS.map(String)],
    tried.map(([name, within]) => [name, ...ATTEMPTS.map((k) => percent(within[k - 1]!))]),
  );
}

/** What the command writes into the page. */
export function writtenPart(study: Study): string {
  const { pairs } = study;
  const later =
    pairs === undefined
      ? []
      : [
          pairsTable(pairs),
          trainingTable(pairs, ["plain", "paw"]),
          trainingTable(pairs, ALL),
          attemptsTable(pairs),
          candidatesTable(pairs),
        ].filter((lines) => lines.length > 0);
  const tables = [...later, startsTable(study), updatesTable(study)];
  return [MARKS[0], "", ...tables.flatMap((lines) => [...lines, ""]), MARKS[1]].join("\n");
}

export function main(args: readonly string[] = []): object {
  let study = readStudy();
  if (args[0] === "--read") {
    const { pairs } = study;
    const isNamed = !existsSync(join(args[1]!, "choice.json"));
    study = {
      ...study,
      pairs: isNamed && pairs !== undefined ? readMore(args[1]!, pairs) : readLease(args[1]!),
    };
    writeFileSync(DATA, `${JSON.stringify(study, undefined, 1)}\n`);
  }
  if (args.includes("--write")) writePart(PAGE, MARKS, writtenPart(study));
  else process.stdout.write(`${writtenPart(study)}\n`);
  return {
    baselines: Object.keys(study.first).length,
    runs: Object.keys(study.pairs?.runs ?? {}).length,
  };
}
