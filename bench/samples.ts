/**
 * Success per sampled token and per step in worlds, with a curriculum and with branches
 * (docs/results/samples.md): RL in the world of `pawl train --quick`, from the agent in
 * examples/try-start.
 *
 *   npm run bench -- samples                  prints the page's table, from bench/samples.json
 *   npm run bench -- samples --run [--seeds 0,1,2,3,4] [--jobs 1] [--out runs/samples]
 *                                             makes the runs that are missing, one thread each, and writes both
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type MetricsLine, readMetrics } from "@pawl/core/runs/metrics-file.js";
import { table } from "@pawl/studies/markdown.js";
import { estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { number, withInterval } from "./shared/figures.js";
import { type Job, madeHere, makeAll, pawl } from "./shared/jobs.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/samples.md";
const DATA = "bench/samples.json";
const MARKS = ["<!-- npm run bench -- samples -->", "<!-- end -->"] as const;

const CURRICULUM = ["--curriculum.rate", "0.5", "--curriculum.redraw", "4"];
const BRANCHING = ["--advantage", "tree", "--rollout.branch.points", "1"];
/** What each arm adds, and its updates. */
const ARMS = {
  grpo: [16],
  curriculum: [16, ...CURRICULUM],
  branching: [20, ...BRANCHING],
  both: [16, ...BRANCHING, ...CURRICULUM],
} as const satisfies Readonly<Record<string, readonly [number, ...string[]]>>;
type Arm = keyof typeof ARMS;

const SETTINGS = [
  ...["train", "--quick", "--model.start", "examples/try-start", "--warm-start.episodes", "0"],
  ...["--paw.loss", "off", "--gradients.every", "0", "--optimizer.schedule", "constant"],
  ...["--evaluation.every", "4", "--evaluation.splits", "valid_seen,valid_unseen", "--keep", "1"],
];
/** The updates of `grpo` after whose tokens, and steps, all are compared. */
const BUDGET = 12;

/** An evaluation, and what had been played for it. */
export interface Point {
  readonly updates: number;
  readonly tokens: number;
  readonly steps: number;
  /** Percent of both splits' tasks. */
  readonly success: number;
}

export interface Results {
  readonly machine: string;
  readonly date: string;
  readonly curves: Readonly<Record<Arm, Readonly<Record<string, readonly Point[]>>>>;
}

/** A run's evaluations, in order. */
export function curveOf(lines: readonly MetricsLine[]): readonly Point[] {
  let [updates, tokens, steps] = [0, 0, 0];
  const points: Point[] = [];
  for (const line of lines) {
    if (line["policy.tokens"] !== undefined) {
      // The record has the tokens of groups that were replaced, and not their steps.
      const sampled = line["policy.tokens"] + (line["curriculum.tokens"] ?? 0);
      updates += 1;
      tokens += sampled;
      steps += sampled / line["train.responseTokens"]!;
    }
    const seen = line["eval.valid_seen.success"];
    if (seen === undefined) continue;
    const success = 50 * (seen + line["eval.valid_unseen.success"]!);
    points.push({ updates, tokens: Math.round(tokens), steps: Math.round(steps), success });
  }
  return points;
}

/** Success where so many tokens or steps had been played, between two evaluations; NaN beyond the last. */
export function successAt(curve: readonly Point[], by: "tokens" | "steps", spent: number): number {
  const after = curve.findIndex((point) => point[by] >= spent);
  if (after < 1) return after === 0 ? curve[0]!.success : Number.NaN;
  const [a, b] = [curve[after - 1]!, curve[after]!];
  return a.success + ((b.success - a.success) * (spent - a[by])) / (b[by] - a[by]);
}

const shown = (value: number): string => Math.round(value).toLocaleString("en-GB");

/** The mean over seeds of what had been spent, and of success, at each evaluation that all have. */
function meanCurve(curves: Readonly<Record<string, readonly Point[]>>): readonly Point[] {
  const all = Object.values(curves);
  const mean = (values: readonly number[]) => estimate(values).mean;
  return all[0]!.map(({ updates }, i) => ({
    updates,
    tokens: mean(all.map((curve) => curve[i]!.tokens)),
    steps: mean(all.map((curve) => curve[i]!.steps)),
    success: mean(all.map((curve) => curve[i]!.success)),
  }));
}

/** The tokens at which a mean curve first reaches a success. */
function tokensTo(curve: readonly Point[], success: number): number | undefined {
  const after = curve.findIndex((point) => point.success >= success);
  if (after < 1) return after === 0 ? 0 : undefined;
  const [a, b] = [curve[after - 1]!, curve[after]!];
  return a.tokens + ((b.tokens - a.tokens) * (success - a.success)) / (b.success - a.success);
}

/** The page's table. */
export function resultTable({ curves }: Results): readonly string[] {
  const reached = meanCurve(curves.grpo).find(({ updates }) => updates === ARMS.grpo[0])!.success;
  const spentBy = (seed: string, by: "tokens" | "steps"): number =>
    curves.grpo[seed]!.find(({ updates }) => updates === BUDGET)![by];
  const at = (arm: Arm, by: "tokens" | "steps") =>
    new Map(
      Object.entries(curves[arm]).map(([seed, curve]) => [
        Number(seed),
        successAt(curve, by, spentBy(seed, by)),
      ]),
    );
  return table(
    [
      ...["arm", "seeds", "tokens an update", "success at equal tokens", "Δ (95 %)"],
      ...["at equal steps", "Δ (95 %)", `tokens to ${number(reached)} %`],
    ],
    (Object.keys(ARMS) as Arm[]).map((arm) => {
      const curve = meanCurve(curves[arm]);
      const tokens = tokensTo(curve, reached);
      const cells = (["tokens", "steps"] as const).flatMap((by) => [
        number(estimate([...at(arm, by).values()]).mean),
        arm === "grpo" ? "" : withInterval(pairedDifference(at(arm, by), at("grpo", by))!),
      ]);
      const perUpdate = shown(curve.at(-1)!.tokens / curve.at(-1)!.updates);
      const seeds = String(Object.keys(curves[arm]).length);
      return [arm, seeds, perUpdate, ...cells, tokens === undefined ? "not" : shown(tokens)];
    }),
  );
}

export const readResults = (): Results => JSON.parse(readFileSync(DATA, "utf8"));

/** What the command writes into the page. */
export const writtenPart = (results: Results): string =>
  [MARKS[0], "", ...resultTable(results), "", MARKS[1]].join("\n");

function write(results: Results): void {
  writeFileSync(DATA, `${JSON.stringify(results, undefined, 2)}\n`);
  writePart(PAGE, MARKS, writtenPart(results));
}

const folderOf = (out: string, arm: Arm, seed: string): string => join(out, `${arm}-${seed}`);

function jobOf(arm: Arm, seed: string, out: string): Job {
  const [updates, ...adds] = ARMS[arm];
  const args = [...SETTINGS, ...adds, "--updates", String(updates), "--seed", seed];
  return {
    makes: folderOf(out, arm, seed),
    make: (partial) => pawl(...args, "--engine.threads", "1", "--quiet", "--out", partial),
  };
}

/** The curves of the runs that are there, beside those of other seeds that were recorded. */
function curvesIn(out: string, seeds: readonly string[]): Results["curves"] {
  const { curves } = readResults();
  const of = (arm: Arm) => {
    const made = seeds.flatMap((seed) => {
      const folder = folderOf(out, arm, seed);
      if (!existsSync(folder)) return [];
      const lines = readMetrics(join(folder, "metrics.jsonl"), (problem) => {
        throw new Error(problem);
      });
      return [[seed, curveOf(lines)]];
    });
    return { ...curves[arm], ...Object.fromEntries(made) };
  };
  const arms = Object.keys(ARMS) as Arm[];
  return Object.fromEntries(arms.map((arm) => [arm, of(arm)])) as Results["curves"];
}

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      seeds: { type: "string", default: "0,1,2,3,4" },
      jobs: { type: "string", default: "1" },
      out: { type: "string", default: join("runs", "samples") },
    },
  });
  if (!values.run) {
    process.stdout.write(`${writtenPart(readResults())}\n`);
    return {};
  }
  mkdirSync(values.out, { recursive: true });
  const seeds = values.seeds.split(",");
  const arms = Object.keys(ARMS) as Arm[];
  const jobs = seeds.flatMap((seed) => arms.map((arm) => jobOf(arm, seed, values.out)));
  const failed = await makeAll(jobs, Number(values.jobs));
  if (failed.length > 0) process.exitCode = 1;
  write({ ...madeHere(), curves: curvesIn(values.out, seeds) });
  return { seeds: values.seeds, failed };
}
