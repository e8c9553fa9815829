/**
 * Should a start learn observations before RL? In the world of `pawl train --quick`, from starts in
 * which the loss of actions always has the weight 1 (docs/results/warm-starts.md).
 *
 *   npm run bench -- warm-starts                    prints the page's table, from bench/warm-starts.json
 *   npm run bench -- warm-starts --run [--seeds 0,1,2,3,4] [--arms actions,both,world] [--out runs/warm-starts]
 *                                                   makes the runs that are missing, one after another with
 *                                                   one thread each, and writes both
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { runChild } from "@pawl/studies/child.js";
import { table } from "@pawl/studies/markdown-table.js";
import { type Estimate, estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { OWN_PLAY } from "./shared/own-play.js";

export const PAGE = "docs/results/warm-starts.md";
const DATA = "bench/warm-starts.json";
const MARKS = ["<!-- npm run bench -- warm-starts --run -->", "<!-- end -->"] as const;

/** What RL starts from. */
const ARMS = {
  actions: "imitated actions",
  both: "imitated actions, learnt observations",
  world: "imitated actions, then learnt the observations of its own play",
} as const;
type Arm = keyof typeof ARMS;
const SPLITS = ["valid_seen", "valid_unseen"] as const;

/** Tasks solved before and after RL, by arm, seed and split. */
export interface Results {
  readonly machine: string;
  readonly tasks: number;
  readonly solved: Partial<
    Record<
      Arm,
      Readonly<Record<string, Readonly<Record<(typeof SPLITS)[number], readonly [number, number]>>>>
    >
  >;
}

const TASKS = 200;
const UPDATES = 12;
const TRAIN = ["train", "--quick", "--engine.threads", "1"];
const START = ["--updates", "0", "--evaluation.every", "0"];
const MEANS = ["--warm-start.sft.mean", "each", "--warm-start.sft.action-weight"];
const OBSERVATIONS = "--warm-start.sft.observation-weight";
/** WM-SFT: the observations of its own play alone are learnt. */
const WORLD = [
  ...[...MEANS, "0", OBSERVATIONS, "1", "--warm-start.episodes", "600"],
  ...["--warm-start.sft.epochs", "2", "--warm-start.sft.optimizer.warmup", "4"],
  ...["--warm-start.sft.optimizer.learning-rate", "1e-3"],
];
/** No world modelling during RL, so that a difference is the start's. */
const RL = [
  ...["--warm-start.episodes", "0", "--paw.loss", "off", "--gradients.every", "0"],
  ...["--updates", String(UPDATES), "--evaluation.every", String(UPDATES)],
  ...["--evaluation.tasks", String(TASKS)],
];

/** The commands of an arm with one seed, by the folder that each fills. */
function stagesOf(arm: Arm, folderOf: (stage: string) => string): readonly (readonly string[])[] {
  const actions = ["start-actions", ...TRAIN, ...START, ...MEANS, "1", OBSERVATIONS, "0"];
  const rl = (start: string): readonly string[] => [
    ...[`rl-${arm}`, ...TRAIN, ...RL, "--model.start", folderOf(start)],
  ];
  switch (arm) {
    case "actions":
      return [actions, rl("start-actions")];
    case "both":
      return [
        ["start-both", ...TRAIN, ...START, ...MEANS, "1", OBSERVATIONS, "1"],
        rl("start-both"),
      ];
    case "world":
      return [
        actions,
        ["play", "rollout", "--checkpoint", folderOf("start-actions"), ...OWN_PLAY],
        [
          ...["start-world", ...TRAIN, ...START, ...WORLD],
          ...["--warm-start.runs", folderOf("play"), "--model.start", folderOf("start-actions")],
        ],
        rl("start-world"),
      ];
  }
}

/** Makes what is missing; a folder gets its name once it is complete. */
async function run(arm: Arm, seed: string, out: string): Promise<void> {
  const folderOf = (stage: string): string => join(out, `${stage}-${seed}`);
  for (const [stage, ...args] of stagesOf(arm, folderOf)) {
    const folder = folderOf(stage!);
    if (existsSync(folder)) continue;
    const partial = `${folder}.${process.pid}`;
    await runChild([...args, "--seed", seed, "--out", partial], {
      program: join("dist", "lib", "main.js"),
      signal: new AbortController().signal,
    });
    renameSync(partial, folder);
    process.stderr.write(`${stage}-${seed} done\n`);
  }
}

/** What was solved before and after RL, as the run itself evaluated it. */
function solvedIn(folder: string, split: string): readonly [before: number, after: number] {
  const lines = readMetrics(join(folder, "metrics.jsonl"), (problem) => {
    throw new Error(problem);
  }).filter((line) => line[`eval.${split}.success`] !== undefined);
  const solved = lines.map((line) => Math.round(line[`eval.${split}.success`]! * TASKS));
  const isWhole = lines.every((line) => line[`eval.${split}.episodes`] === TASKS);
  if (solved.length !== 2 || !isWhole)
    throw new Error(`${folder}: expected two evaluations of ${TASKS} tasks of ${split}`);
  return [solved[0]!, solved[1]!];
}

const number = (value: number): string => value.toFixed(1).replace("-", "−");
const signed = (value: number): string => `${value > 0 ? "+" : ""}${number(value)}`;
const withDeviation = ({ mean, deviation = 0 }: Estimate): string =>
  `${number(mean)} ± ${number(deviation)}`;
const withInterval = ({ mean, interval }: Estimate): string =>
  `${signed(mean)}${interval === undefined ? "" : ` (${interval.map(number).join(" to ")})`}`;

/** The page's table: success before and after RL, and the difference to the start of actions only. */
export function resultTable({ solved, tasks }: Results): readonly string[] {
  const arms = (Object.keys(ARMS) as Arm[]).filter((arm) => solved[arm] !== undefined);
  const shares = (arm: Arm, split: (typeof SPLITS)[number], at: 0 | 1) =>
    new Map(
      Object.entries(solved[arm]!).map(([seed, counts]) => [
        Number(seed),
        (100 * counts[split][at]) / tasks,
      ]),
    );
  return table(
    ["start", "split", "seeds", "before RL", "Δ (95 %)", "after RL", "Δ (95 %)", "after, by seed"],
    SPLITS.flatMap((split) =>
      arms.map((arm) => {
        const cells = ([0, 1] as const).flatMap((at) => {
          const own = shares(arm, split, at);
          const difference = pairedDifference(own, shares("actions", split, at));
          return [
            withDeviation(estimate([...own.values()])),
            arm === "actions" || difference === undefined ? "" : withInterval(difference),
          ];
        });
        const after = shares(arm, split, 1);
        return [
          ...[ARMS[arm], split, String(after.size), ...cells],
          [...after.values()].map(number).join(", "),
        ];
      }),
    ),
  );
}

/** What the command writes into the page. */
export const writtenPart = (results: Results): string =>
  [MARKS[0], "", ...resultTable(results), "", MARKS[1]].join("\n");

export const readResults = (): Results => JSON.parse(readFileSync(DATA, "utf8")) as Results;

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      seeds: { type: "string", default: "0,1,2,3,4" },
      arms: { type: "string", default: Object.keys(ARMS).join(",") },
      out: { type: "string", default: join("runs", "warm-starts") },
    },
  });
  if (!values.run) {
    process.stdout.write(`${writtenPart(readResults())}\n`);
    return {};
  }
  const { out } = values;
  mkdirSync(out, { recursive: true });
  const seeds = values.seeds.split(",");
  const solved: Results["solved"] = Object.fromEntries(
    (values.arms.split(",") as Arm[]).map((arm) => [arm, {}]),
  );
  for (const seed of seeds)
    for (const arm of Object.keys(solved) as Arm[]) {
      await run(arm, seed, out);
      const folder = join(out, `rl-${arm}-${seed}`);
      const counts = Object.fromEntries(SPLITS.map((split) => [split, solvedIn(folder, split)]));
      Object.assign(solved[arm]!, { [seed]: counts });
    }
  const results = { machine: `${cpus().length} × ${cpus()[0]?.model}`, tasks: TASKS, solved };
  writeFileSync(DATA, `${JSON.stringify(results, undefined, 2)}\n`);
  const page = readFileSync(PAGE, "utf8");
  const [from, to] = [page.indexOf(MARKS[0]), page.indexOf(MARKS[1])];
  if (from < 0 || to < from) throw new Error(`${PAGE}: expected ${MARKS.join(" … ")}`);
  const rest = page.slice(to + MARKS[1].length);
  writeFileSync(PAGE, `${page.slice(0, from)}${writtenPart(results)}${rest}`);
  return { seeds, tasks: TASKS };
}
