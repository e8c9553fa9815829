/**
 * RWML alone, RL alone, and RWML → RL, from the same start models, in the world of `pawl train
 * --quick`.
 *
 *   npm run bench -- rwml [--seeds 0,1,2] [--jobs 2] [--encoder minilm] [--out runs/bench-rwml]
 *
 * A start model imitates a teacher, plays, and learns from its own play how the world responds;
 * without that, RWML has nothing to build on: docs/results/rwml.md. Every run is a process with one
 * thread. Finished runs are kept, so it can be interrupted and restarted. Prints two tables with
 * means and standard deviations over seeds and paired differences: how well RWML learnt to predict,
 * and success after each arm on both splits.
 */
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { runChild } from "@pawl/studies/child.js";
import { type Estimate, estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { OWN_PLAY } from "./shared/own-play.js";

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
// How the world responds to what this policy does: a teacher's actions are seldom invalid, so
// imitation does not show it. Its own play is not imitated.
const WORLD = [
  ...["--updates", "0", "--warm-start.episodes", "600", "--warm-start.sft.epochs", "2"],
  ...["--warm-start.sft.action-weight", "0", "--warm-start.sft.observation-weight", "1"],
  ...["--warm-start.sft.optimizer.warmup", "4"],
  ...["--warm-start.sft.optimizer.learning-rate", "1e-3"],
];
// World modelling during RL would blur the effect of RWML before it.
const RL = ["--warm-start.episodes", "0", "--paw.loss", "off", "--gradients.every", "0"];
const RWML = [
  ...["--collect.episodes", "900", "--filter.share", "0", "--prediction-tokens", "48"],
  ...["--updates", "70", "--triplets", "96", "--group-size", "8", "--minibatch", "768"],
  ...["--objective.kl", "0.003", "--objective.entropy", "0", "--optimizer.learning-rate", "2e-4"],
  ...["--optimizer.schedule", "linear", "--optimizer.warmup", "4", "--reward.threshold", "0.027"],
  ...["--held-out.triplets", "512", "--evaluation.every", "35", "--evaluation.tasks", "256"],
  ...["--evaluation.temperature", "1", "--engine.threads", "1"],
];

const stages = ["imitation", "play", "start", "rwml", "rl", "rwml-rl"] as const;
type Stage = (typeof stages)[number];
const arms = ["start", "rwml", "rl", "rwml-rl"] as const satisfies readonly Stage[];

const folderOf = (stage: Stage, seed: number): string => join(options.out, `${stage}-${seed}`);

function commandOf(stage: Stage, seed: number): readonly string[] {
  const common = ["--seed", String(seed)];
  const from = (before: Stage) => ["--model.start", folderOf(before, seed)];
  const play = folderOf("play", seed);
  const encoder = ["--reward.encoder.from", options.encoder];
  switch (stage) {
    case "imitation":
      return ["train", ...TRAIN, ...common, "--updates", "0", "--warm-start.episodes", "1200"];
    case "play":
      return ["rollout", "--checkpoint", folderOf("imitation", seed), ...OWN_PLAY, ...common];
    case "start":
      return [
        "train",
        ...TRAIN,
        ...WORLD,
        "--warm-start.runs",
        play,
        ...from("imitation"),
        ...common,
      ];
    case "rwml":
      return ["rwml", ...from("start"), ...common, ...RWML, ...encoder];
    case "rl":
      return ["train", ...TRAIN, ...RL, ...from("start"), ...common];
    case "rwml-rl":
      return ["train", ...TRAIN, ...RL, ...from("rwml"), ...common];
  }
}

/**
 * Runs one stage of a seed, unless it is done; a folder gets its final name once the run is
 * complete.
 */
async function run(stage: Stage, seed: number): Promise<void> {
  const folder = folderOf(stage, seed);
  if (existsSync(folder)) return;
  const partial = `${folder}.${process.pid}`;
  const program = join("dist", "lib", "main.js");
  await runChild([...commandOf(stage, seed), "--out", partial], {
    program,
    signal: stopped.signal,
  });
  renameSync(partial, folder);
  process.stderr.write(`${stage}-${seed} done\n`);
}

async function runSeeds(): Promise<void> {
  const waiting = [...seeds];
  const worker = async (): Promise<void> => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift())
      for (const stage of stages) await run(stage, seed);
  };
  await Promise.all(Array.from({ length: Number(options.jobs) }, worker));
}

/** The first and last recorded values of a metric. */
function ends(stage: Stage, seed: number, metric: string): { first: number; last: number } {
  const path = join(folderOf(stage, seed), "metrics.jsonl");
  const values = readMetrics(path, (problem) => process.stderr.write(`${problem}\n`)).flatMap(
    (line) => line[metric] ?? [],
  );
  const [first, last] = [values[0], values.at(-1)];
  if (first === undefined || last === undefined) throw new Error(`${path} has no ${metric}`);
  return { first, last };
}

const bySeed = (value: (seed: number) => number): ReadonlyMap<number, number> =>
  new Map(seeds.map((seed) => [seed, value(seed)]));
const show = (values: ReadonlyMap<number, number>, digits = 1): string => {
  const { mean, deviation = 0 } = estimate([...values.values()]);
  return `${mean.toFixed(digits)} ± ${deviation.toFixed(digits)}`;
};
const showDifference = (difference: Estimate | undefined, digits = 1): string => {
  const { mean = 0, interval } = difference ?? {};
  const between = interval?.map((end) => end.toFixed(digits)).join(" to ");
  return `${mean.toFixed(digits)}${between === undefined ? "" : ` (${between})`}`;
};
const row = (cells: readonly string[]): void => {
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
};

/** What RWML did to predictions of held-out states, in percent, and to losses per token. */
function printForesight(): Readonly<Record<string, number>> {
  const metrics: readonly (readonly [name: string, metric: string, scale: number])[] = [
    ["reward of samples, %", "heldOut.sampled.reward", 100],
    ["greedy reward, %", "heldOut.reward", 100],
    ["correct in no sample, %", "heldOut.foreseen.none", 100],
    ["correct in some, %", "heldOut.foreseen.some", 100],
    ["correct in all, %", "heldOut.foreseen.all", 100],
    ["loss on actions", "heldOut.loss.actions", 1],
    ["loss on states", "heldOut.loss.states", 1],
  ];
  const result: Record<string, number> = {};
  row(["held-out triplets", "before RWML", "after", "Δ (95 %)"]);
  row(["---", "---", "---", "---"]);
  for (const [name, metric, scale] of metrics) {
    const digits = scale === 1 ? 2 : 1;
    const before = bySeed((seed) => scale * ends("rwml", seed, metric).first);
    const after = bySeed((seed) => scale * ends("rwml", seed, metric).last);
    const difference = pairedDifference(after, before);
    row([name, show(before, digits), show(after, digits), showDifference(difference, digits)]);
    result[`${metric}.change`] = Number(difference?.mean.toFixed(digits));
  }
  return result;
}

/** Success after each arm, in percent. */
function printSuccess(): Readonly<Record<string, number>> {
  const splits = ["valid_seen", "valid_unseen"];
  const result: Record<string, number> = {};
  row(["arm", ...splits.flatMap((split) => [split, "Δ to RL (95 %)"])]);
  row(["---", "---", "---", "---", "---"]);
  for (const arm of arms) {
    const cells = splits.flatMap((split) => {
      const of = (one: Stage) =>
        bySeed((seed) => 100 * ends(one, seed, `eval.${split}.success`).last);
      const values = of(arm);
      result[`${arm}_${split}`] = Number(estimate([...values.values()]).mean.toFixed(1));
      const difference = arm === "rl" ? "" : showDifference(pairedDifference(values, of("rl")));
      return [show(values), difference];
    });
    row([arm, ...cells]);
  }
  return result;
}

export async function main(): Promise<Readonly<Record<string, unknown>>> {
  mkdirSync(options.out, { recursive: true });
  await runSeeds();
  const foresight = printForesight();
  process.stdout.write("\n");
  const success = printSuccess();
  return { machine: `${cpus().length} × ${cpus()[0]?.model}`, seeds, ...foresight, ...success };
}
