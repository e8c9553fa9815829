/** What the runs of docs/results/plan-regime.md came to, from their folders. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { updatesOf } from "@pawl/core/train/recorded-updates.js";
import { readCard } from "@pawl/pawl/evaluation/card-markdown.js";
import { ARMS, type Standing } from "./regime-plan.js";

export const SPLITS = ["valid_seen", "valid_unseen"] as const;
/** Groups an update, in all of these runs. */
export const GROUPS = 8;

/** An update: the task types of its eight groups are not the same in all. */
export interface UpdateFacts {
  readonly success: number;
  /** Groups in which some episodes succeed and some do not. */
  readonly mixed: number;
  readonly refused: number;
  readonly malformed: number;
  readonly kl: number;
  readonly tokens: number;
  readonly seconds: number;
  /** Mean probability of observation tokens, where they are learnt. */
  readonly observed?: number;
}

/** An evaluation: tasks solved, round by round, and the share of actions that were not carried out. */
interface Evaluated {
  readonly tasks: number;
  readonly solved: readonly number[];
  readonly invalid: readonly number[];
}

/** By split. */
type Evaluations = Readonly<Record<string, Evaluated>>;

/** All that `bench regime-runs` did in one lease. */
export interface Lease {
  readonly machine: string;
  readonly date: string;
  /** Starts by their demonstrations. */
  readonly starts: Readonly<Record<string, Evaluations>>;
  readonly chosen: string;
  /** Updates that all candidates had, and where each stood then. */
  readonly compared: number;
  readonly standings: Readonly<Record<string, Standing>>;
  readonly candidates: Readonly<Record<string, readonly UpdateFacts[]>>;
  /** The update at which all of a pair were evaluated; none: no evaluation was reached. */
  readonly evaluatedAt: number;
  /** By arm and seed, such as `paw-0`. */
  readonly runs: Readonly<Record<string, Run>>;
}

interface Run {
  readonly updates: readonly UpdateFacts[];
  readonly evaluations: Evaluations;
  /** Share of 64 tasks of valid_unseen that are solved within 1, 2, … attempts, where it was tried. */
  readonly solvedWithin?: readonly number[];
}

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
    const observed = line["world.p"];
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
      ...(observed !== undefined && { observed }),
    });
  }
  return updates;
}

/** The cards of one run or start, of so many rounds; a round counts if it has both splits. */
function evaluationsOf(folder: string, name: string, rounds: number): Evaluations {
  const card = (split: string, round: number) => join(folder, `${name}-${split}-${round}`);
  const ended = Array.from({ length: rounds }, (_, i) => i + 1).filter((round) =>
    SPLITS.every((split) => existsSync(join(card(split, round), "card.json"))),
  );
  if (ended.length === 0) return {};
  return Object.fromEntries(
    SPLITS.map((split) => {
      const results = ended.map((round) => readCard(card(split, round)).results);
      return [
        split,
        {
          tasks: results[0]!.episodes,
          solved: results.map(({ success, episodes }) => Math.round((success ?? 0) * episodes)),
          invalid: results.map(({ invalid }) => invalid ?? Number.NaN),
        },
      ];
    }),
  );
}

const json = (...path: readonly string[]) => JSON.parse(readFileSync(join(...path), "utf8"));

/** The folders of runs whose names are such. */
const named = (out: string, pattern: RegExp): readonly string[] =>
  readdirSync(join(out, "runs"))
    .filter((name) => pattern.test(name))
    .sort();

/** The runs of arms, and what their start solves. */
function readRuns(out: string, rounds: number): Pick<Lease, "runs" | "starts"> {
  const evaluations = join(out, "evaluations");
  const starts = named(out, /^start-\d+$/).map((name) => [
    name.slice("start-".length),
    evaluationsOf(evaluations, name, 1),
  ]);
  const arms = new RegExp(`^(${Object.keys(ARMS).join("|")})-\\d+$`);
  const runs = named(out, arms).map((name) => {
    const attempts = join(evaluations, `attempts-${name}`);
    const { solvedWithin } = existsSync(join(attempts, "card.json"))
      ? readCard(attempts).results
      : {};
    return [
      name,
      {
        updates: updateFactsOf(join(out, "runs", name)),
        evaluations: evaluationsOf(evaluations, name, rounds),
        ...(solvedWithin !== undefined && { solvedWithin }),
      },
    ];
  });
  return { starts: Object.fromEntries(starts), runs: Object.fromEntries(runs) };
}

/** What is there already, and what `bench regime-runs --chosen … --out` wrote after it. */
export function readMore(out: string, before: Lease): Lease {
  const { chosen, updates, rounds } = json(out, "pairs.json");
  if (chosen !== before.chosen || updates !== before.evaluatedAt)
    throw new Error(`${out} continues ${chosen} to update ${updates}, which is another study`);
  const { starts, runs } = readRuns(out, rounds);
  const again = Object.entries(starts)
    .filter(([, splits]) => Object.keys(splits).length > 0)
    .map(([name, splits]) => [`${name}, made again`, splits]);
  return {
    ...before,
    starts: { ...before.starts, ...Object.fromEntries(again) },
    runs: { ...before.runs, ...runs },
  };
}

/** Reads the folder that `bench regime-runs --out` wrote with candidates. */
export function readLease(out: string): Lease {
  const { chosen, updates, standings } = json(out, "choice.json");
  const pairs = existsSync(join(out, "pairs.json"))
    ? json(out, "pairs.json")
    : { updates: 0, rounds: 0 };
  const facts = (name: string) => updateFactsOf(join(out, "runs", name));
  const evaluations = join(out, "evaluations");
  const [some] = readdirSync(evaluations).filter((name) =>
    existsSync(join(evaluations, name, "card.json")),
  );
  const { machine, createdAt } = readCard(join(evaluations, some!));
  return {
    machine,
    date: createdAt.slice(0, 10),
    ...{ chosen, compared: updates, standings },
    candidates: Object.fromEntries(
      named(out, /^\d+-(slow|fast|inside)$/).map((name) => [name, facts(name)]),
    ),
    evaluatedAt: pairs.rounds > 0 ? pairs.updates : 0,
    ...readRuns(out, pairs.rounds),
  };
}
