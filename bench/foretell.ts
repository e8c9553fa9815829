/**
 * Does an agent act better if it states what it expects before it acts (docs/results/knowledge.md,
 * "Predict, then act")? A study: no setting does this.
 *
 *   npm run bench -- foretell                    prints the page's table, from bench/foretell.json
 *   npm run bench -- foretell --write            writes it into the page
 *   npm run bench -- foretell --run [--seeds 0,1,…,4] [--arms act,foretell,recall] [--jobs 2]
 *                             [--world household] [--out runs/foretell]
 *                                                makes what is missing there, one thread each, and reads
 *                                                what is there into bench/foretell.json
 *   npm run bench -- foretell --run --world alfworld --model smollm2 --engine URL
 *                                                the same in ALFWorld, with a model folder and an engine server
 *   npm run bench -- foretell --one FOLDER --arm ARM --seed SEED …
 *                                                makes one of them
 *
 * `--run --rehearse` is the same in two minutes, to see that the commands work.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { teacherPolicy } from "@pawl/core/rollout/policies/config.js";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { recordRollout } from "@pawl/core/runs/record-rollout.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { table } from "@pawl/studies/markdown.js";
import { estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { trainConfig } from "@pawl/training/config.js";
import { trainRun } from "@pawl/training/run.js";
import alfworldSmollm2 from "../recipes/alfworld-smollm2.js";
import { quick } from "../recipes/quick.js";
import { number, withInterval } from "./shared/figures.js";
import {
  openingOf,
  registerStating,
  STATEMENTS,
  STATING,
  type Statement,
  statedIn,
  statingTeacher,
} from "./shared/foretelling.js";
import { bench, type Job, madeHere, makeAll } from "./shared/jobs.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/knowledge.md";
const DATA = "bench/foretell.json";
const MARKS = ["<!-- npm run bench -- foretell --write -->", "<!-- end of foretell -->"] as const;

/** Where it is tried: settings of `pawl train`, and who is imitated. */
const WORLDS = {
  household: {
    settings: {
      ...quick,
      prompt: { ...quick.prompt, style: STATING },
      warmStart: {
        ...quick.warmStart,
        sft: { ...quick.warmStart.sft, observationWeight: 0, mean: "each" },
      },
    },
    teacher: "seeker",
    epsilon: quick.warmStart.epsilon,
    /** A statement and an action. */
    maxTokens: 24,
  },
  alfworld: {
    settings: {
      ...alfworldSmollm2,
      optimizer: { ...alfworldSmollm2.optimizer, learningRate: 4e-5 },
    },
    teacher: "expert",
    epsilon: 0.3,
    maxTokens: 64,
  },
} as const;
type World = keyof typeof WORLDS;

/** Before RL, and after it. */
type Pair = readonly [before: number, after: number];
/** What is kept of a run. */
interface Result {
  /** Percent of the tasks of both splits. */
  readonly success: { readonly valid_seen: Pair; readonly valid_unseen: Pair };
  /** Tokens of a response, at the end. */
  readonly tokens: number;
  /** Of the last update's steps: the share whose statement came so, and of those refused. */
  readonly true: number;
  readonly foreseen: number;
}
interface Results {
  readonly machine: string;
  readonly date: string;
  readonly results: Partial<Record<World, Partial<Record<Statement, Record<string, Result>>>>>;
}

/** What an invocation was given. */
interface Given {
  readonly world: World;
  readonly model: string | undefined;
  readonly engine: string | undefined;
  readonly rehearse: boolean;
}

/** Imitates a teacher who states something, and goes on by RL without world loss. */
async function make(folder: string, statement: Statement, seed: number, given: Given) {
  const { settings, teacher, epsilon, maxTokens } = WORLDS[given.world];
  const dose = given.rehearse ? { episodes: 150, updates: 1, tasks: 8 } : undefined;
  const { episodes } = { ...settings.warmStart, ...dose };
  const shown = `${folder}.teacher`;
  const evaluation = { splits: ["valid_seen", "valid_unseen"], tasks: dose?.tasks ?? 128 };
  const updates = dose?.updates ?? settings.updates;
  const config = trainConfig(findEnvKind(settings.env.name)).parse({
    ...settings,
    ...{ maxTokens, seed, updates, keep: 1, paw: { loss: "off" }, gradients: { every: 0 } },
    model: { ...settings.model, ...(given.model !== undefined && { start: given.model }) },
    engine: given.engine === undefined ? { threads: 1 } : { address: given.engine },
    warmStart: { sft: settings.warmStart.sft, episodes, runs: [shown] },
    evaluation: { ...settings.evaluation, ...evaluation, every: updates },
  });
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  const style = promptStyle(environment.prompt, config.prompt);
  const tasks = environment.tasks(config.split);
  await recordRollout(
    {
      ...{ environment, style, seed, groupSize: 1, stepLimit: settings.stepLimit },
      policy: statingTeacher(teacherPolicy(environment, teacher, epsilon), style, statement),
      tasks: Array.from({ length: episodes }, (_, i) => tasks[i % tasks.length]!),
    },
    { folder: shown, config: { env: config.env, prompt: config.prompt } },
  );
  await trainRun(config, { folder });
}

/** What a run came to, from its record. */
function resultOf(folder: string): Result {
  const fail = (problem: string): never => {
    throw new Error(problem);
  };
  const lines = readMetrics(join(folder, "metrics.jsonl"), fail);
  const evaluations = lines.filter((line) => line["eval.valid_seen.success"] !== undefined);
  const successes = (split: string): Pair => {
    const all = evaluations.map((line) => 100 * line[`eval.${split}.success`]!);
    return [all[0]!, all.at(-1)!];
  };
  const played = [...openRun(folder, fail).episodes()];
  const last = Math.max(...played.map(({ group }) => group)) - 7;
  const steps = played.filter(({ group }) => group >= last).flatMap((episode) => episode.steps);
  const share = (some: typeof steps) =>
    some.filter(
      ({ response, observation }) => statedIn(response).statement === openingOf(observation),
    ).length / some.length;
  return {
    success: { valid_seen: successes("valid_seen"), valid_unseen: successes("valid_unseen") },
    tokens: lines.findLast((line) => line["train.responseTokens"] !== undefined)![
      "train.responseTokens"
    ]!,
    true: share(steps),
    foreseen: share(steps.filter(({ valid }) => !valid)),
  };
}

/** The page's table: success before and after RL, and the difference to acting at once. */
export function resultTable({ results }: Results): readonly string[] {
  const rows = Object.entries(results).flatMap(([world, arms]) =>
    Object.entries(arms).map(([arm, runs]) => {
      const by = (some: Record<string, Result> | undefined, of: (one: Result) => number) =>
        new Map(Object.entries(some ?? {}).map(([seed, one]) => [Number(seed), of(one)]));
      const both =
        (at: 0 | 1) =>
        ({ success: { valid_seen: seen, valid_unseen: unseen } }: Result): number =>
          (seen[at] + unseen[at]) / 2;
      const mean = (of: (one: Result) => number): string =>
        number(estimate([...by(runs, of).values()]).mean);
      const difference = pairedDifference(by(runs, both(1)), by(arms.act, both(1)));
      return [
        ...[world, arm, String(Object.keys(runs).length), mean(both(0)), mean(both(1))],
        arm === "act" || difference === undefined ? "" : withInterval(difference),
        mean(({ success }) => success.valid_unseen[1]),
        mean(({ tokens }) => tokens),
        ...(arm === "act"
          ? ["", ""]
          : [mean((one) => 100 * one.true), mean((one) => 100 * one.foreseen)]),
      ];
    }),
  );
  const head = ["world", "before acting", "seeds", "before RL, %", "after RL, %", "Δ (95 %)"];
  const rest = ["unseen, %", "tokens a step", "came so, %", "of the refused, %"];
  return table([...head, ...rest], rows);
}

const readResults = (): Results => JSON.parse(readFileSync(DATA, "utf8"));

/** What the command writes into the page. */
export const writtenPart = (results: Results): string =>
  [MARKS[0], "", ...resultTable(results), "", MARKS[1]].join("\n");

/** The results in a folder, whose names are WORLD-ARM-SEED. */
function resultsIn(out: string): Results["results"] {
  const results: Record<string, Record<string, Record<string, Result>>> = {};
  for (const name of readdirSync(out).sort()) {
    const [, world, arm, seed] = /^([a-z]+)-([a-z]+)-(\d+)$/.exec(name) ?? [];
    if (world === undefined || arm === undefined || seed === undefined) continue;
    const arms = results[world] ?? {};
    results[world] = { ...arms, [arm]: { ...arms[arm], [seed]: resultOf(join(out, name)) } };
  }
  return results as Results["results"];
}

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      rehearse: { type: "boolean", default: false },
      seeds: { type: "string", default: "0,1,2,3,4,5,6,7,8,9" },
      arms: { type: "string", default: Object.keys(STATEMENTS).join(",") },
      jobs: { type: "string", default: "2" },
      world: { type: "string", default: "household" },
      model: { type: "string" },
      engine: { type: "string" },
      out: { type: "string", default: join("runs", "foretell") },
      one: { type: "string" },
      arm: { type: "string", default: "act" },
      seed: { type: "string", default: "0" },
    },
  });
  const { out, model, engine, rehearse } = values;
  const world = values.world as World;
  registerStating();
  if (values.one !== undefined) {
    const given = { world, model, engine, rehearse };
    await make(values.one, values.arm as Statement, Number(values.seed), given);
    return {};
  }
  if (values.run) {
    mkdirSync(out, { recursive: true });
    const flags = Object.entries({ world, model, engine }).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}`, value],
    );
    const jobs = values.seeds.split(",").flatMap((seed) =>
      values.arms.split(",").map(
        (arm): Job => ({
          makes: join(out, `${world}-${arm}-${seed}`),
          make: (partial) =>
            bench(
              ...["foretell", "--one", partial, "--arm", arm, "--seed", seed, ...flags],
              ...(rehearse ? ["--rehearse"] : []),
            ),
        }),
      ),
    );
    const failed = await makeAll(jobs, Number(values.jobs));
    if (failed.length > 0) process.exitCode = 1;
    const results = { ...madeHere(), results: resultsIn(out) };
    if (rehearse) for (const row of resultTable(results)) process.stdout.write(`${row}\n`);
    else writeFileSync(DATA, `${JSON.stringify(results, undefined, 1)}\n`);
    return { jobs: jobs.length, failed };
  }
  if (!existsSync(DATA)) return { results: "none yet: --run makes them" };
  const written = writtenPart(readResults());
  if (values.write) writePart(PAGE, MARKS, written);
  else process.stdout.write(`${written}\n`);
  return {};
}
