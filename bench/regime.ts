/**
 * The tables of docs/results/regime.md, from what its runs reached (bench/regime.json).
 *
 *   npm run bench -- regime                     prints them
 *   npm run bench -- regime --write             writes them into the page
 *   npm run bench -- regime --read FOLDERS…     reads the baselines' run folders into bench/regime.json
 */
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { updatesOf } from "@pawl/core/train/recorded-updates.js";
import { table } from "@pawl/studies/markdown.js";

export const PAGE = "docs/results/regime.md";
const DATA = "bench/regime.json";
const MARKS = ["<!-- npm run bench -- regime --write -->", "<!-- end -->"] as const;
const SPLITS = ["valid_seen", "valid_unseen"] as const;
/** Groups an update, in all of these runs. */
const GROUPS = 8;

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

/** An update: the task types of its eight groups are not the same in all. */
interface UpdateFacts {
  readonly success: number;
  /** Groups in which some episodes succeed and some do not. */
  readonly mixed: number;
  readonly refused: number;
  readonly malformed: number;
  readonly kl: number;
  readonly tokens: number;
  readonly seconds: number;
}

interface Baseline {
  readonly seed: number;
  readonly start: Readonly<Record<string, Evaluation>>;
  readonly updates: readonly UpdateFacts[];
}

type Study = Readonly<Record<string, Baseline>>;

export const readStudy = (): Study => JSON.parse(readFileSync(DATA, "utf8")) as Study;

/** What each update of a run did, by its records. */
export function updateFactsOf(folder: string): readonly UpdateFacts[] {
  const run = openRun(folder, () => undefined);
  const lines = run.metrics().filter(({ update }) => update! >= 0);
  const updates: UpdateFacts[] = [];
  if (lines.length === 0) return updates;
  for (const { update, groups } of updatesOf(run.episodes(), GROUPS)) {
    const line = lines[update];
    if (line === undefined) break;
    const steps = groups.flatMap(({ episodes }) => episodes.flatMap((one) => one.steps));
    const share = (is: (step: (typeof steps)[number]) => boolean): number =>
      steps.filter(is).length / steps.length;
    const isMixed = (episodes: readonly { readonly success: boolean }[]): boolean =>
      new Set(episodes.map(({ success }) => success)).size > 1;
    updates.push({
      success: line["train.success"]!,
      mixed: groups.filter(({ episodes }) => isMixed(episodes)).length,
      refused: share(({ valid }) => !valid),
      malformed: share(({ wellFormed }) => !wellFormed),
      kl: line["policy.kl"]!,
      tokens: line["train.tokens"]!,
      seconds: Object.entries(line).reduce(
        (sum, [name, value]) => sum + (name.startsWith("seconds.") ? value : 0),
        0,
      ),
    });
  }
  return updates;
}

function baselineOf(folder: string): Baseline {
  const run = openRun(folder, () => undefined);
  const [before = {}] = run.metrics();
  const start = SPLITS.map((split) => {
    const of = (what: string): number => before[`eval.${split}.${what}`] ?? Number.NaN;
    const tasks = of("episodes");
    const prefix = `eval.${split}.success.`;
    const types = Object.fromEntries(
      Object.entries(before).flatMap(([name, value]) =>
        name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
      ),
    );
    const solved = Math.round(of("success") * tasks);
    return [split, { solved, tasks, invalid: of("invalid"), types }] as const;
  });
  return {
    seed: run.manifest.seed,
    start: Object.fromEntries(start),
    updates: updateFactsOf(folder),
  };
}

const percent = (share: number): string => (100 * share).toFixed(1);

/** Success of each start, before RL. */
export function startsTable(study: Study): readonly string[] {
  return table(
    ["demonstrations", "valid_seen", "valid_unseen", "refused or malformed"],
    Object.entries(study).map(([name, { start }]) => [
      STARTS[name]!,
      ...SPLITS.map((split) => {
        const { solved, tasks } = start[split]!;
        return `${percent(solved / tasks)} % (${solved} of ${tasks})`;
      }),
      SPLITS.map((split) => `${percent(start[split]!.invalid)} %`).join(", "),
    ]),
  );
}

/** What each update of the baselines did. */
export function updatesTable(study: Study): readonly string[] {
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
    Object.entries(study).flatMap(([name, { updates }]) =>
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

/** What the command writes into the page. */
export function writtenPart(study: Study): string {
  return [MARKS[0], "", ...startsTable(study), "", ...updatesTable(study), "", MARKS[1]].join("\n");
}

export function main(args: readonly string[] = []): object {
  if (args[0] === "--read") {
    const read = args.slice(1).map((folder) => [basename(folder), baselineOf(folder)] as const);
    const order = Object.keys(STARTS);
    read.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
    writeFileSync(DATA, `${JSON.stringify(Object.fromEntries(read), undefined, 2)}\n`);
  }
  const study = readStudy();
  if (args.includes("--write")) {
    const page = readFileSync(PAGE, "utf8");
    const [from, to] = [page.indexOf(MARKS[0]), page.indexOf(MARKS[1])];
    if (from < 0 || to < from) throw new Error(`${PAGE}: expected ${MARKS.join(" … ")}`);
    const rest = page.slice(to + MARKS[1].length);
    writeFileSync(PAGE, `${page.slice(0, from)}${writtenPart(study)}${rest}`);
  } else process.stdout.write(`${writtenPart(study)}\n`);
  return { baselines: Object.keys(study).length };
}
