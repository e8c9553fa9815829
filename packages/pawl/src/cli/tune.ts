import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { builtFile } from "@pawl/core/processes/calls.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { isPreset } from "@pawl/engine-cpu/init.js";
import { checkClaim, claim } from "@pawl/studies/claim.js";
import { table as markdownTable } from "@pawl/studies/markdown.js";
import { estimate } from "@pawl/studies/statistics.js";
import {
  CHOOSING,
  type Found,
  type Round,
  type Score,
  tune as search,
  successOf,
  type TunePlan,
} from "@pawl/studies/tune.js";
import { candidateName, candidateOf, tunedConfig, tuneRuns } from "@pawl/studies/tune-runs.js";
import { settingConditions } from "@pawl/training/applies.js";
import { type TrainConfig, trainConfig } from "@pawl/training/config.js";
import { isRemote } from "@pawl/training/engines.js";
import { checkTraining } from "@pawl/training/run.js";
import { z } from "zod";
import { type Call, defineCommand, exitCodes } from "./command.js";
import { defaultRecipe, quickRecipe } from "./default-recipe.js";
import { envKindOf } from "./env-options.js";
import { duration, percent } from "./format.js";
import { note, print } from "./io.js";
import { createLive } from "./live.js";

/** Evaluations of runs that are compared have this many tasks at most, unless more were asked for. */
const TASKS = 500;
const REPORT = "report.md";
const RECIPE = "recipe.json";
const RECORD = "tune.json";

/** `pawl tune`: a search for the settings that matter most, within some minutes. */
export const tune = defineCommand({
  name: "tune",
  summary: "search learning rate, imitation and group size for a task, within some minutes",
  worlds: "named",
  details:
    "Begins with the settings that pawl train would take. Tries learning rates, then half and twice the imitated episodes,\nthen half and twice the group size: a short look at each with one seed, the better half to the end, the best with a\nsecond seed. Chosen on the first split of --evaluation.splits (default: the first that neither trains nor tests), judged\non the second with other seeds. Every run is a run folder in --out; the same command goes on where it was stopped.",
  common: ["env.name", "quick", "model.start", "engine.address", "minutes", "out"].concat([
    "optimizer.learningRate",
    "warmStart.episodes",
    "groupSize",
    "updates",
    "evaluation.splits",
    "evaluation.tasks",
    "seed",
  ]),
  base: (given) => (given.peek("quick") === "true" ? quickRecipe(given) : defaultRecipe(given)),
  options: (peek) =>
    trainConfig(envKindOf(peek)).extend({
      minutes: z
        .number()
        .gt(0)
        .default(15)
        .describe("how long to search, with earlier calls on the same folder"),
      out: z.string().default("runs/tune").describe("folder of the runs and what was found"),
      quick: z.boolean().default(false).describe("begin with the settings of pawl train --quick"),
    }),
  examples: [
    ["pawl tune --quick", "settings for the smaller world of pawl train --quick"],
    ["pawl tune --env desk --minutes 60", "an hour for another world, beginning with its recipe"],
    ["pawl tune --config recipe.yaml", "beginning with settings of your own"],
    ["pawl train --config runs/tune/recipe.json", "train with what was found"],
  ],
  applies: settingConditions,
  check: (config, how) => planOf(config as Settings, how).says.join("\n"),
  async run({ config, io, signal, ...how }) {
    const { minutes, out } = config;
    const { base, plan, says, ...runs } = planOf(config as Settings, how);
    const evaluation = { tasks: runs.tasks, rounds: 1 };
    mkdirSync(out, { recursive: true });
    claim({ folder: out, settings: base });
    for (const line of [...says, `recorded to ${out}; the same command goes on with it`])
      if (!io.quiet) note(io, line);
    const before = secondsSpent(out);
    const startedAt = performance.now();
    const spent = (): number => before + (performance.now() - startedAt) / 1000;
    const left = (): number => 60 * minutes - spent();
    const rounds: Round[] = [];
    const save = (found?: Found): void =>
      writeSmallFile(
        join(out, RECORD),
        `${JSON.stringify({ seconds: Math.round(spent()), evaluation, rounds, ...found }, undefined, 2)}\n`,
      );
    let running: ReadonlyMap<string, string> = new Map();
    const clock = (): string => `${duration(spent())} of ${duration(60 * minutes)}`;
    const lines = (): readonly string[] => [
      clock(),
      ...[...running].map(([name, text]) => `${name}  ${io.colors.dim(text)}`),
    ];
    const live = createLive(io, () => [clock(), ...running.keys()].join(" · "));
    try {
      const runner = tuneRuns({
        ...{ ...runs, base, out, left, signal, program: builtFile("main") },
        onProgress(now) {
          running = now;
          live.draw(lines);
        },
        onEnd: () => save(),
      });
      const found = await search(plan, runner, (round) => {
        rounds.push(round);
        save();
        if (!io.quiet) note(io, `${duration(spent())}  ${roundLine(round, base)}`);
      });
      save(found);
      live.end([]);
      return conclude(found, { ...runs, base, plan, out, minutes, spent: spent() }, io);
    } catch (error) {
      save();
      if (signal.aborted && !io.quiet)
        note(io, `interrupted after ${clock()}; the same command goes on with ${out}`);
      throw error;
    } finally {
      live.end([]);
    }
  },
});

type Settings = TrainConfig & { readonly minutes: number; readonly out: string };
type How = Pick<Call<unknown>, "given" | "placeOf">;

/** What a search of these settings would do; refuses what cannot be searched. */
function planOf({ minutes, out, ...rest }: Settings, how: How) {
  const { quick: _, ...base } = rest as typeof rest & { quick?: boolean };
  const environment = checkTraining(base, how);
  const { updates, groups, groupSize, evaluation, engine, warmStart, model, split, seed } = base;
  if (updates === 0)
    throw new ConfigError("updates: 0 updates have no settings to search; ask for some");
  if (how.given("evaluation.every", []))
    throw new ConfigError(
      `${how.placeOf(["evaluation", "every"])}: runs are evaluated when they are compared; leave it out`,
    );
  const own = how.given("evaluation.splits", []) ? evaluation.splits : [];
  const [choose, judge] = splitsOf(environment, split, own);
  const sizes = [choose, judge].map((name) => environment.tasks(name).length);
  void environment.close?.();
  const early = Math.ceil(updates / 3);
  const wanted = how.given("evaluation.tasks", [])
    ? evaluation.tasks
    : Math.min(TASKS, Math.max(evaluation.tasks, early * groups * groupSize));
  const cores = availableParallelism();
  // A small model is not faster with several threads; runs side by side are.
  const perRun = engine.threads ?? (isPreset(model.start) ? 1 : cores);
  const places = isRemote(engine) ? 1 : Math.max(1, Math.floor(cores / perRun));
  const tasks = Math.min(wanted, ...sizes);
  checkFolder(out);
  checkClaim({ folder: out, settings: base, evaluation: { tasks, rounds: 1 }, place: [] });
  const imitates =
    warmStart.episodes > 0 && warmStart.data.length === 0 && warmStart.runs.length === 0;
  const plan: TunePlan = { given: candidateOf(base), imitates, updates, early, seed };
  const searched = ["optimizer.learningRate", ...(imitates ? ["warmStart.episodes"] : [])];
  const because =
    warmStart.episodes === 0 ? "nothing is imitated" : "recorded episodes are imitated";
  const says = [
    `pawl tune would search ${[...searched, "groupSize"].join(", ")} of ${String(base.env.name)} with ${model.start} for ${minutes} minutes, beginning with ${candidateName(plan.given)}${imitates ? "" : ` (not warmStart.episodes: ${because})`}`,
    `chosen on ${choose}, judged on ${judge}, ${tasks} tasks each; seeds ${seed} and ${seed + 1} choose, ${seed + CHOOSING} and later judge`,
    `${imitates ? 13 : 10} runs or a few more, each of ${early} or ${updates} updates, and 2 for every seed that judges, as far as time goes; ${places === 1 ? "one at a time" : `${places} at a time`}, ${perRun === 1 ? "one thread" : `${perRun} threads`} each`,
  ];
  return { base, plan, says, choose, judge, tasks, early, places, threads: places * perRun };
}

/** The split to choose on and the one to judge on. */
function splitsOf(
  { name, splits }: { readonly name: string; readonly splits: readonly string[] },
  training: string,
  given: readonly string[],
): readonly [string, string] {
  const isTest = (split: string): boolean => /^test/.test(split);
  const others = splits.filter((split) => split !== training && !given.includes(split));
  // Once nothing is chosen any more, a test split may judge.
  const [choose, judge] = [...given, ...[...others].sort((a, b) => +isTest(a) - +isTest(b))];
  const how = "name two with --evaluation.splits CHOOSE,JUDGE";
  if (given.length > 2)
    throw new ConfigError(`evaluation.splits: expected two, got ${given.length}: ${how}`);
  if (choose === undefined || judge === undefined || choose === judge || isTest(choose))
    throw new ConfigError(
      `evaluation.splits: ${name} has ${splits.join(", ")}; settings are chosen on one that is not for tests, and judged on another one: ${how}`,
    );
  return [choose, judge];
}

/** Refuses a folder that holds something else. */
function checkFolder(out: string): void {
  if (!existsSync(out)) return;
  const names = readdirSync(out);
  if (names.length > 0 && !names.includes("job.json"))
    throw new ConfigError(
      `--out: ${out} holds something else (${names[0]}); name another folder, or that of an earlier search`,
    );
}

const record = z.looseObject({ seconds: z.number().min(0) });

/** Seconds that earlier calls have taken. */
function secondsSpent(out: string): number {
  const path = join(out, RECORD);
  if (!existsSync(path)) return 0;
  try {
    return record.parse(JSON.parse(readRegularText(path))).seconds;
  } catch (error) {
    throw new UserError(
      `${path}: expected the record of a search, with its seconds: ${(error as Error).message}; remove it to begin counting anew`,
    );
  }
}

/** What a round compared, and what it kept. */
function roundLine({ about, updates, seeds, tried, kept, why }: Round, base: TrainConfig): string {
  const shown = tried.map(({ candidate, score }) => {
    const value = {
      "learning rate": candidate.rate,
      imitation: candidate.imitation,
      "group size": candidate.groupSize,
    }[about];
    return `${value} ${score === undefined ? "failed" : percent(successOf(score))}${kept.includes(candidate) ? " *" : ""}`;
  });
  return `${about}, ${updates} of ${base.updates} updates, seed ${seeds.join(" and ")}: ${shown.join(", ")} (* kept, ${why})`;
}

interface Conclusion {
  readonly base: TrainConfig;
  readonly plan: TunePlan;
  readonly out: string;
  readonly minutes: number;
  readonly choose: string;
  readonly judge: string;
  readonly spent: number;
}

/** Writes and prints the recipe and what speaks for it. */
function conclude(found: Found, about: Conclusion, io: Call<unknown>["io"]): number {
  const { base, out, minutes } = about;
  if (found.rounds.length === 0)
    throw new UserError(
      `${minutes} minutes were not enough for a first look at five learning rates; what was done is kept in ${out}: the same command with more --minutes goes on`,
    );
  const recipe = join(out, RECIPE);
  writeSmallFile(recipe, `${JSON.stringify(tunedConfig(base, found.chosen), undefined, 2)}\n`);
  const text = reportOf(found, about);
  writeSmallFile(join(out, REPORT), `${text}\n`);
  print(io, text);
  print(io, `\npawl train --config ${recipe}`);
  return exitCodes.done;
}

/** The evidence, as Markdown. */
function reportOf({ chosen, rounds, isCut, judged }: Found, about: Conclusion): string {
  const { base, plan, choose, judge, minutes, spent } = about;
  const given = candidateOf(base);
  const changed = [
    ["optimizer.learningRate", given.rate, chosen.rate],
    ["warmStart.episodes", given.imitation, chosen.imitation],
    ["groupSize", given.groupSize, chosen.groupSize],
  ].flatMap(([name, from, to]) => (from === to ? [] : [`${name} ${to} (was ${from})`]));
  const { groups } = tunedConfig(base, chosen);
  const regrouped = groups === base.groups ? [] : [`groups ${groups} (was ${base.groups})`];
  const compared = rounds.flatMap(({ about: what, updates, seeds, tried, kept }) =>
    tried.map(({ candidate, score, failed }) => [
      `${what}, ${updates} updates, seed ${seeds.join(", ")}`,
      ...[candidate.rate, candidate.imitation, candidate.groupSize].map(String),
      score === undefined ? `failed: ${failed}` : withInterval(score),
      kept.includes(candidate) ? "kept" : "",
    ]),
  );
  return [
    changed.length === 0
      ? "Nothing better than the given settings was found."
      : `Found: ${[...changed, ...regrouped].join(", ")}.`,
    isCut
      ? `${minutes} minutes were not enough for the whole search (${Math.round(spent / 60)} taken); with more --minutes the same command goes on.`
      : `The search took ${duration(spent)}.`,
    "",
    `Chosen on ${choose}. Success with its 95 % interval (Wilson, over tasks):`,
    "",
    ...markdownTable(["compared", "rate", "imitated", "group size", "success", ""], compared),
    "",
    ...judgement(judged, judge, plan.updates),
  ].join("\n");
}

const withInterval = (score: Score): string => {
  const [low, high] = successInterval(score);
  return `${percent(successOf(score))} (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})`;
};

/** How the found settings did where nothing was chosen. */
function judgement(judged: Found["judged"], split: string, updates: number): readonly string[] {
  if (judged.length === 0)
    return [`Not judged on ${split}: there was no time left for a run with another seed.`];
  const compares = judged.some((one) => "given" in one);
  const rows = judged.map(({ seed, chosen, given }) => [
    String(seed),
    chosen === undefined ? "failed" : withInterval(chosen),
    ...(compares ? [given === undefined ? "failed" : withInterval(given)] : []),
  ]);
  const gains = judged.flatMap(({ chosen, given }) =>
    chosen === undefined || given === undefined ? [] : [successOf(chosen) - successOf(given)],
  );
  const { mean, interval } = estimate(gains);
  const points = (share: number): string =>
    `${share < 0 ? "−" : "+"}${Math.abs(100 * share).toFixed(1)}`;
  return [
    `Judged on ${split} after ${updates} updates, with seeds that chose nothing:`,
    "",
    ...markdownTable(["seed", "found", ...(compares ? ["given"] : [])], rows),
    ...(gains.length === 0
      ? []
      : [
          "",
          `Difference: ${points(mean)} points${interval === undefined || gains.length < 3 ? " (too few seeds for an interval)" : ` (95 % interval ${points(interval[0])} to ${points(interval[1])}, Student's t over ${gains.length} seeds)`}.`,
        ]),
  ];
}
