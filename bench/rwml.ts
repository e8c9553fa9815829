/**
 * RWML alone, RL alone, and RWML → RL, from the same warm starts, in the world of `pawl train --quick`.
 *
 *   npm run bench -- rwml [--seeds 0,1,2] [--jobs 2] [--encoder minilm] [--out runs/bench-rwml]
 *
 * Every run is a process of one thread; what is finished is kept, so it can be interrupted and started again.
 * Prints a table: success after each arm on both splits, mean and standard deviation over seeds, and the
 * differences to RL alone, seed by seed.
 */
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runChild } from "../src/bench/child.js";
import { type Estimate, estimate, pairedDifference } from "../src/bench/statistics.js";
import { readMetrics } from "../src/runs/metrics-file.js";

const { values: options } = parseArgs({
  args: process.argv.slice(3),
  options: {
    seeds: { type: "string", default: "0,1,2" },
    jobs: { type: "string", default: "2" },
    encoder: { type: "string", default: "minilm" },
    out: { type: "string", default: join("runs", "bench-rwml") },
  },
});
const seeds = options.seeds.split(",").map(Number);
const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort());

const TRAIN = ["--quick", "--engine.threads", "1", "--evaluation.tasks", "256"];
const RL = ["--warm-start.episodes", "0", "--updates", "24", "--evaluation.every", "12"];
// World modelling beside RL would blur what RWML before it does.
const ALONE = ["--paw.loss", "off", "--gradient-sample", "0"];
const RWML = [
  ...["--collect.episodes", "400", "--collect.epsilon", "0.1", "--prediction-tokens", "48"],
  ...["--updates", "30", "--triplets", "24", "--group-size", "8", "--minibatch", "192"],
  ...["--objective.kl", "0.01", "--objective.entropy", "0", "--optimizer.learning-rate", "1e-4"],
  ...["--optimizer.warmup", "8", "--reward.threshold", "0.027", "--evaluation.every", "30"],
  ...["--evaluation.tasks", "256", "--evaluation.temperature", "1", "--engine.threads", "1"],
];

const arms = ["warm", "rwml", "rl", "rwml-rl"] as const;
type Arm = (typeof arms)[number];

const folderOf = (arm: Arm, seed: number): string => join(options.out, `${arm}-${seed}`);

function commandOf(arm: Arm, seed: number): readonly string[] {
  const common = ["--seed", String(seed)];
  const from = (start: Arm) => ["--model.start", folderOf(start, seed)];
  switch (arm) {
    case "warm":
      return ["train", ...TRAIN, ...common, "--updates", "0", "--warm-start.episodes", "1200"];
    case "rwml":
      return [
        "rwml",
        ...from("warm"),
        ...common,
        ...RWML,
        "--reward.encoder.from",
        options.encoder,
      ];
    case "rl":
      return ["train", ...TRAIN, ...RL, ...ALONE, ...from("warm"), ...common];
    case "rwml-rl":
      return ["train", ...TRAIN, ...RL, ...ALONE, ...from("rwml"), ...common];
  }
}

/** Runs one arm of a seed, unless it is there; a folder has its final name once the run is whole. */
async function run(arm: Arm, seed: number): Promise<void> {
  const folder = folderOf(arm, seed);
  if (existsSync(folder)) return;
  const partial = `${folder}.${process.pid}`;
  const program = join("dist", "src", "cli", "main.js");
  await runChild([...commandOf(arm, seed), "--out", partial], { program, signal: stopped.signal });
  renameSync(partial, folder);
  process.stderr.write(`${arm}-${seed} done\n`);
}

async function runSeeds(): Promise<void> {
  const waiting = [...seeds];
  const worker = async (): Promise<void> => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift())
      for (const arm of arms) await run(arm, seed);
  };
  await Promise.all(Array.from({ length: Number(options.jobs) }, worker));
}

/** The last value of a metric in a run, in percent. */
function last(arm: Arm, seed: number, metric: string): number {
  const path = join(folderOf(arm, seed), "metrics.jsonl");
  const lines = readMetrics(path, (problem) => process.stderr.write(`${problem}\n`));
  const value = lines.findLast((line) => line[metric] !== undefined)?.[metric];
  if (value === undefined) throw new Error(`${path} has no ${metric}`);
  return 100 * value;
}

const show = ({ mean, deviation = 0 }: Estimate): string =>
  `${mean.toFixed(1)} ± ${deviation.toFixed(1)}`;
const showDifference = ({ mean, interval }: Estimate): string =>
  `${mean.toFixed(1)}${interval ? ` (${interval[0].toFixed(1)} to ${interval[1].toFixed(1)})` : ""}`;

export async function main(): Promise<Readonly<Record<string, unknown>>> {
  mkdirSync(options.out, { recursive: true });
  await runSeeds();
  const splits = ["valid_seen", "valid_unseen"];
  const result: Record<string, unknown> = { machine: `${cpus().length} × ${cpus()[0]?.model}` };
  process.stdout.write(`| arm | ${splits.map((s) => `${s} | Δ to RL (95 %)`).join(" | ")} |\n`);
  process.stdout.write("| --- | --- | --- | --- | --- |\n");
  for (const arm of arms) {
    const cells = splits.map((split) => {
      const of = (one: Arm) =>
        new Map(seeds.map((seed) => [seed, last(one, seed, `eval.${split}.success`)] as const));
      const mean = estimate([...of(arm).values()]);
      const difference = arm === "rl" ? undefined : pairedDifference(of(arm), of("rl"));
      result[`${arm}_${split}`] = Number(mean.mean.toFixed(1));
      return `${show(mean)} | ${difference === undefined ? "" : showDifference(difference)}`;
    });
    process.stdout.write(`| ${arm} | ${cells.join(" | ")} |\n`);
  }
  return { seeds, ...result };
}
