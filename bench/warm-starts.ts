/**
 * Should a start learn observations before RL? From starts in which the loss of actions always has the
 * weight 1 (docs/results/warm-starts.md): a small model in the world of `pawl train --quick`, or
 * SmolLM2-135M in ALFWorld.
 *
 *   npm run bench -- warm-starts                    prints the page's tables, from bench/warm-starts.json
 *   npm run bench -- warm-starts --run [--seeds 0,1,2,3,4] [--arms actions,both,world] [--out runs/warm-starts]
 *                                                   makes the runs that are missing, one after another with
 *                                                   one thread each, and writes both
 *   npm run bench -- warm-starts --world alfworld --model smollm2 --engine URL --run …
 *                                                   the same with a model folder and an engine server; it
 *                                                   wants runs/teacher (recipes/alfworld-smollm2.ts)
 *
 * Several of these may make different seeds and arms in the same `--out` at once; repeated for all of them, it
 * makes nothing and writes both. "world" needs the start of "actions".
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { runChild } from "@pawl/studies/child.js";
import { table } from "@pawl/studies/markdown.js";
import { type Estimate, estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { number, withInterval } from "./shared/figures.js";
import { OWN_PLAY } from "./shared/own-play.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/warm-starts.md";
const DATA = "bench/warm-starts.json";
const END = "<!-- end -->";

/** What RL starts from. */
const ARMS = {
  actions: "imitated actions",
  both: "imitated actions, learnt observations",
  world: "imitated actions, then learnt the observations of its own play",
} as const;
type Arm = keyof typeof ARMS;
const SPLITS = ["valid_seen", "valid_unseen"] as const;

type Split = (typeof SPLITS)[number];

/** Tasks solved before and after RL, by arm, seed and split. */
export interface Results {
  readonly machine: string;
  readonly tasks: Readonly<Record<Split, number>>;
  readonly solved: Partial<
    Record<
      Arm,
      Readonly<Record<string, Readonly<Record<Split, readonly [before: number, after: number]>>>>
    >
  >;
}

/** Where it is tried, and with which commands. */
interface World {
  readonly command: string;
  readonly tasks: Results["tasks"];
  readonly updates: number;
  /** `pawl train` with the recipe; its own model and engine come with them. */
  readonly train: readonly string[];
  readonly model: (named: string) => readonly string[];
  readonly engine: (address: string) => readonly string[];
  /** Records the play of a checkpoint. */
  readonly play: readonly string[];
  /** WM-SFT on it. */
  readonly world: readonly string[];
  readonly rl: readonly string[];
}

const MEANS = ["--warm-start.sft.mean", "each", "--warm-start.sft.action-weight"];
const OBSERVATIONS = "--warm-start.sft.observation-weight";
const WORLDS = {
  quick: {
    command: "npm run bench -- warm-starts --run",
    tasks: { valid_seen: 200, valid_unseen: 200 },
    updates: 12,
    train: ["train", "--quick"],
    model: () => [],
    engine: () => ["--engine.threads", "1"],
    play: OWN_PLAY,
    world: [
      ...["--warm-start.episodes", "600", "--warm-start.sft.epochs", "2"],
      ...["--warm-start.sft.optimizer.warmup", "4"],
      ...["--warm-start.sft.optimizer.learning-rate", "1e-3"],
    ],
    rl: [],
  },
  alfworld: {
    command: "npm run bench -- warm-starts --world alfworld --run",
    tasks: { valid_seen: 140, valid_unseen: 134 },
    updates: 30,
    train: ["train", "--config", "recipes/alfworld-smollm2.ts"],
    model: (named) => ["--model.start", named],
    engine: (address) => ["--engine.address", address],
    play: [
      ...["--env", "alfworld", "--env.order", "0", "--prompt.style", "chat"],
      ...["--step-limit", "30", "--max-tokens", "24"],
      ...["--split", "train", "--temperature", "1", "--groups", "400", "--group-size", "1"],
      ...["--concurrency", "128"],
    ],
    world: [
      ...["--warm-start.episodes", "360", "--warm-start.sft.epochs", "1"],
      ...["--warm-start.sft.optimizer.learning-rate", "1e-4"],
    ],
    rl: ["--optimizer.learning-rate", "4e-5", "--checkpoint-every", "30", "--keep", "1"],
  },
} as const satisfies Readonly<Record<string, World>>;
export type WorldName = keyof typeof WORLDS;

/** How this invocation computes. */
interface Means {
  readonly model: string;
  readonly engine: string;
  readonly out: string;
}

/** The commands of an arm with one seed, by the folder that each fills. */
function stagesOf(
  arm: Arm,
  world: World,
  means: Means,
  folderOf: (stage: string) => string,
): readonly (readonly string[])[] {
  const engine = world.engine(means.engine);
  const isRemote = engine[0] === "--engine.address";
  const train = [...world.train, ...engine, ...(isRemote ? ["--engine.copy"] : [])];
  const start = [...train, "--updates", "0", "--evaluation.every", "0"];
  const imitated = (stage: "actions" | "both"): readonly string[] => [
    `start-${stage}`,
    ...[...start, ...world.model(means.model)],
    ...[...MEANS, "1", OBSERVATIONS, stage === "both" ? "1" : "0"],
  ];
  // No world modelling during RL, so that a difference is the start's.
  const rl = [
    `rl-${arm}`,
    ...[...train, "--model.start", folderOf(`start-${arm}`), "--warm-start.episodes", "0"],
    ...["--paw.loss", "off", "--gradients.every", "0", "--updates", String(world.updates)],
    ...["--evaluation.every", String(world.updates), "--evaluation.splits", SPLITS.join()],
    ...["--evaluation.tasks", String(world.tasks.valid_seen), ...world.rl],
  ];
  if (arm !== "world") return [imitated(arm), rl];
  return [
    imitated("actions"),
    [
      ...["play", "rollout", "--checkpoint", folderOf("start-actions"), ...world.play],
      ...(isRemote ? engine : []),
    ],
    [
      "start-world",
      ...[...start, ...MEANS, "0", OBSERVATIONS, "1", ...world.world],
      ...["--warm-start.runs", folderOf("play"), "--model.start", folderOf("start-actions")],
    ],
    rl,
  ];
}

/** Makes what is missing; a folder gets its name once it is complete. */
async function run(arm: Arm, seed: string, world: World, means: Means): Promise<void> {
  const folderOf = (stage: string): string => join(means.out, `${stage}-${seed}`);
  for (const [stage, ...args] of stagesOf(arm, world, means, folderOf)) {
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
function solvedIn(
  folder: string,
  split: Split,
  tasks: number,
): readonly [before: number, after: number] {
  const lines = readMetrics(join(folder, "metrics.jsonl"), (problem) => {
    throw new Error(problem);
  }).filter((line) => line[`eval.${split}.success`] !== undefined);
  const solved = lines.map((line) => Math.round(line[`eval.${split}.success`]! * tasks));
  const isWhole = lines.every((line) => line[`eval.${split}.episodes`] === tasks);
  if (solved.length !== 2 || !isWhole)
    throw new Error(`${folder}: expected two evaluations of ${tasks} tasks of ${split}`);
  return [solved[0]!, solved[1]!];
}

const withDeviation = ({ mean, deviation = 0 }: Estimate): string =>
  `${number(mean)} ± ${number(deviation)}`;

/** The page's table: success before and after RL, and the difference to the start of actions only. */
export function resultTable({ solved, tasks }: Results): readonly string[] {
  const arms = (Object.keys(ARMS) as Arm[]).filter((arm) => solved[arm] !== undefined);
  const shares = (arm: Arm, split: Split, at: 0 | 1) =>
    new Map(
      Object.entries(solved[arm]!).map(([seed, counts]) => [
        Number(seed),
        (100 * counts[split][at]) / tasks[split],
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
          [...after.values()].map((value) => number(value)).join(", "),
        ];
      }),
    ),
  );
}

/** What the command writes into the page, of a world. */
export const writtenPart = (name: WorldName, results: Results): string =>
  [`<!-- ${WORLDS[name].command} -->`, "", ...resultTable(results), "", END].join("\n");

export const readResults = (): Readonly<Partial<Record<WorldName, Results>>> =>
  JSON.parse(readFileSync(DATA, "utf8"));

function write(name: WorldName, results: Results): void {
  writeFileSync(DATA, `${JSON.stringify({ ...readResults(), [name]: results }, undefined, 2)}\n`);
  const marks = [`<!-- ${WORLDS[name].command} -->`, END] as const;
  writePart(PAGE, marks, writtenPart(name, results));
}

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      world: { type: "string", default: "quick" },
      model: { type: "string", default: "smollm2" },
      engine: { type: "string", default: "http://127.0.0.1:8000" },
      seeds: { type: "string", default: "0,1,2,3,4" },
      arms: { type: "string", default: Object.keys(ARMS).join(",") },
      out: { type: "string", default: join("runs", "warm-starts") },
    },
  });
  if (!values.run) {
    for (const [name, results] of Object.entries(readResults()))
      process.stdout.write(`${writtenPart(name as WorldName, results)}\n`);
    return {};
  }
  const name = values.world as WorldName;
  const world: World | undefined = WORLDS[name];
  if (world === undefined)
    throw new Error(`--world ${name}: expected one of ${Object.keys(WORLDS).join()}`);
  const { tasks } = world;
  mkdirSync(values.out, { recursive: true });
  const seeds = values.seeds.split(",");
  const solved: Results["solved"] = Object.fromEntries(
    (values.arms.split(",") as Arm[]).map((arm) => [arm, {}]),
  );
  for (const seed of seeds)
    for (const arm of Object.keys(solved) as Arm[]) {
      await run(arm, seed, world, values);
      const folder = join(values.out, `rl-${arm}-${seed}`);
      const counts = SPLITS.map((split) => [split, solvedIn(folder, split, tasks[split])]);
      Object.assign(solved[arm]!, { [seed]: Object.fromEntries(counts) });
    }
  write(name, { machine: `${cpus().length} × ${cpus()[0]?.model}`, tasks, solved });
  return { seeds, tasks };
}
