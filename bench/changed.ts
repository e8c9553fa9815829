/**
 * How soon does an agent succeed again after its world has changed, with and without learning from
 * observations (docs/results/changed-worlds.md)? A study: no setting changes a world.
 *
 *   npm run bench -- changed                    prints the page's table, from bench/changed.json
 *   npm run bench -- changed --write            writes it into the page
 *   npm run bench -- changed --run [--seeds 0,1,…,9] [--arms plain,echo] [--updates 32] [--jobs 1]
 *                            [--out runs/changed]
 *                                               makes the agent and the runs that are missing, one thread
 *                                               each, and reads what is there into bench/changed.json, beside other seeds
 *   npm run bench -- changed --one FOLDER --arm ARM --seed SEED
 *                                               makes one of them
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { defineEnv } from "@pawl/core/envs/define-env.js";
import { type Env, type Environment, isRemote } from "@pawl/core/envs/env.js";
import { household } from "@pawl/core/envs/household/household.js";
import { findEnvKind, registerEnv } from "@pawl/core/envs/registry.js";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { variants } from "@pawl/studies/arms.js";
import { table } from "@pawl/studies/markdown.js";
import { estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { trainConfig } from "@pawl/training/config.js";
import { trainRun } from "@pawl/training/run.js";
import { z } from "zod";
import { quick } from "../recipes/quick.js";
import { curveOf, type Point } from "./samples.js";
import { number, withInterval } from "./shared/figures.js";
import { bench, type Job, madeHere, makeAll, pawl } from "./shared/jobs.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/changed-worlds.md";
const DATA = "bench/changed.json";
const MARKS = ["<!-- npm run bench -- changed --write -->", "<!-- end -->"] as const;

/**
 * A house whose switches are loose: a lamp stays as it was unless the same switch is used twice in a
 * row. All texts are the household's.
 */
export function changedWorld(env: Env, before?: string): Env {
  let last = before;
  return {
    get goal() {
      return env.goal;
    },
    get taskType() {
      return env.taskType!;
    },
    reset(task, seed) {
      last = undefined;
      return env.reset(task, seed);
    },
    initialContext: () => env.initialContext!(),
    step(action) {
      const asked = action.trim();
      const isRepeated = asked === last;
      last = asked;
      const [, way, lamp] = /^switch (on|off) (.*)$/.exec(asked) ?? [];
      if (isRepeated || way === undefined || !env.admissibleActions!().includes(asked))
        return env.step(action);
      // What is in hand ends every answer.
      const hand = / You hold [^.]*\.$/.exec(env.clone().step(action).observation)![0];
      const observation = `The ${lamp} is ${way === "on" ? "off" : "on"}.${hand}`;
      return { observation, reward: 0, done: false, info: { valid: true, success: false } };
    },
    admissibleActions: () => env.admissibleActions!(),
    clone: () => changedWorld(env.clone(), last),
  };
}

const changedHouse = defineEnv({
  ...household,
  name: "changed-house",
  options: household.options.safeExtend({ changed: z.boolean().default(true) }),
  open({ changed, ...options }): Environment {
    const environment = household.open(options);
    if (!changed) return environment;
    // Its players know the house as it was.
    const { expert: _, seeker: __, ...rest } = environment;
    return {
      ...rest,
      create() {
        const world = environment.create();
        if (isRemote(world)) throw new Error("the household is a world in this process");
        return changedWorld(world);
      },
    };
  },
});

/** What an arm changes in the settings; `before` only evaluates the agent in the house as it was. */
const ARMS = {
  before: { env: { changed: false }, ...variants.plain!.changes, updates: 0 },
  plain: variants.plain!.changes,
  echo: variants.echo!.changes,
};
type Arm = keyof typeof ARMS;

/** The success to be reached again, in %. */
const AGAIN = 55;
const EPISODES = 64;

interface Results {
  readonly machine: string;
  readonly date: string;
  readonly curves: Readonly<Record<string, Readonly<Record<string, readonly Point[]>>>>;
}

/** The settings of `pawl train --quick`, from the agent that it makes. */
function configOf(arm: Arm, seed: number, start: string, updates: number) {
  const { env, ...more } = { env: {}, ...ARMS[arm] };
  const name = changedHouse.name;
  return trainConfig(findEnvKind(name)).parse({
    ...quick,
    env: { ...quick.env, ...env, name },
    model: { start },
    engine: { threads: 1 },
    warmStart: { episodes: 0 },
    ...{ updates, seed, keep: 1, gradients: { every: 0 } },
    optimizer: { ...quick.optimizer, schedule: "constant" },
    evaluation: { ...quick.evaluation, every: 4, splits: ["valid_seen", "valid_unseen"] },
    ...more,
  });
}

/** Episodes until the success is reached, between two evaluations; all of them if it is not. */
export function episodesUntil(curve: readonly Point[], success = AGAIN): number {
  const after = curve.findIndex((point) => point.success >= success);
  if (after <= 0) return EPISODES * (after < 0 ? curve.at(-1)!.updates : 0);
  const [a, b] = [curve[after - 1]!, curve[after]!];
  const share = (success - a.success) / (b.success - a.success);
  return EPISODES * (a.updates + share * (b.updates - a.updates));
}

/** The page's table: every seed, and the means with their difference. */
export function resultTable({ curves }: Results): readonly string[] {
  const { before, ...arms } = curves;
  const by = (arm: string, of: (curve: readonly Point[]) => number) =>
    new Map(Object.entries(arms[arm] ?? {}).map(([seed, curve]) => [Number(seed), of(curve)]));
  const measures = [
    ["episodes", episodesUntil, (value: number) => Math.round(value).toLocaleString("en-GB")],
    ["at the end", (curve: readonly Point[]) => curve.at(-1)!.success, number],
  ] as const;
  const first = Object.values(arms)[0] ?? {};
  const rows = Object.keys(first).map((seed) => [
    seed,
    number(before?.["0"]?.[0]?.success ?? Number.NaN),
    number(first[seed]![0]!.success),
    ...measures.flatMap(([, of, shown]) =>
      Object.values(arms).map((runs) => (runs[seed] === undefined ? "" : shown(of(runs[seed])))),
    ),
  ]);
  const means = measures.flatMap(([, of, shown]) =>
    Object.keys(arms).map((arm) => shown(estimate([...by(arm, of).values()]).mean)),
  );
  const names = Object.keys(arms);
  const head = ["seed", "before", "changed"];
  return [
    ...table(
      [...head, ...measures.flatMap(([what]) => names.map((arm) => `${arm}: ${what}`))],
      [...rows, ["mean", "", "", ...means]],
    ),
    "",
    ...measures.map(([what, of]) => {
      const difference = pairedDifference(by("echo", of), by("plain", of));
      return `- echo − plain, ${what}: ${difference === undefined ? "" : withInterval(difference)}`;
    }),
  ];
}

export const readResults = (): Results => JSON.parse(readFileSync(DATA, "utf8"));

/** What the command writes into the page. */
export const writtenPart = (results: Results): string =>
  [MARKS[0], "", ...resultTable(results), "", MARKS[1]].join("\n");

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      seeds: { type: "string", default: "0,1,2,3,4,5,6,7,8,9" },
      arms: { type: "string", default: "plain,echo" },
      updates: { type: "string", default: "32" },
      jobs: { type: "string", default: "1" },
      out: { type: "string", default: join("runs", "changed") },
      one: { type: "string" },
      arm: { type: "string", default: "plain" },
      seed: { type: "string", default: "0" },
    },
  });
  const { out, updates } = values;
  const start = join(out, "start");
  if (values.one !== undefined) {
    registerEnv(changedHouse);
    const config = configOf(values.arm as Arm, Number(values.seed), start, Number(updates));
    await trainRun(config, { folder: values.one });
    return {};
  }
  if (values.run) {
    mkdirSync(out, { recursive: true });
    const agent: Job = {
      makes: start,
      make: (partial) =>
        pawl(
          "train",
          "--quick",
          "--seed",
          "0",
          "--engine.threads",
          "1",
          "--quiet",
          "--out",
          partial,
        ),
    };
    const runs = [
      ["before", "0"] as const,
      ...values.seeds
        .split(",")
        .flatMap((seed) => values.arms.split(",").map((arm) => [arm, seed] as const)),
    ];
    const more = ["--updates", updates, "--out", out];
    const jobs = runs.map(
      ([arm, seed]): Job => ({
        makes: join(out, `${arm}-${seed}`),
        needs: start,
        make: (partial) =>
          bench("changed", "--one", partial, "--arm", arm, "--seed", seed, ...more),
      }),
    );
    const failed = await makeAll([agent, ...jobs], Number(values.jobs));
    if (failed.length > 0) process.exitCode = 1;
    const curves: Record<string, Readonly<Record<string, readonly Point[]>>> = {
      ...readResults().curves,
    };
    for (const [arm, seed] of runs) {
      if (!existsSync(join(out, `${arm}-${seed}`))) continue;
      const lines = readMetrics(join(out, `${arm}-${seed}`, "metrics.jsonl"), (problem) => {
        throw new Error(problem);
      });
      curves[arm] = { ...curves[arm], [seed]: curveOf(lines) };
    }
    writeFileSync(DATA, `${JSON.stringify({ ...madeHere(), curves }, undefined, 1)}\n`);
  }
  const written = writtenPart(readResults());
  if (values.write) writePart(PAGE, MARKS, written);
  else process.stdout.write(`${written}\n`);
  return {};
}
