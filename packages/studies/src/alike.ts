/**
 * Whether runs can be compared: those of an arm differ in their seed alone, those of two arms in what
 * the arms change. Otherwise a difference between arms would not be theirs.
 */
import { flagOf } from "@pawl/core/config/settings.js";
import {
  differences,
  type SettingsTree,
  valueAt,
  withValueAt,
} from "@pawl/core/config/settings-tree.js";
import { UserError } from "@pawl/core/errors.js";
import { claimedSettings, show } from "./claim.js";
import type { EvaluationSize, RunFolder } from "./result-file.js";

/** A run, and what is known of it. */
export interface Run extends Pick<RunFolder, "setting" | "algorithm" | "arm" | "folder"> {
  /** Its settings, if its folder does not have them yet. */
  readonly settings?: SettingsTree;
  /** How it is evaluated at its end. */
  readonly evaluation?: EvaluationSize | undefined;
}

/** Settings that change neither what is learnt nor the final evaluation. */
const IDLE = [
  "seed",
  "checkpointEvery",
  "keep",
  "track",
  "gradients",
  "evaluation.every",
  // The start has its own record; a run imitates nothing.
  "warmStart",
  // Where it was computed.
  ...["address", "threads", "model", "copy", "sampler", "samplerModel", "samplerFolder"].map(
    (name) => `engine.${name}`,
  ),
];
/** What arms change (`arms.ts`). */
const OF_ARMS = ["paw"];
const OF_KL_ARMS = [...OF_ARMS, "objective.kl"];
/** What algorithms change. */
const OF_ALGORITHMS = ["advantage"];

/** Refuses runs of a setting that differ in anything else, at their end or after some updates. */
export function checkAlike(runs: readonly Run[], at?: number): void {
  const firstOf = new Map<string, Run>();
  for (const run of runs) {
    const first = (key: string): Run => {
      if (!firstOf.has(key)) firstOf.set(key, run);
      return firstOf.get(key)!;
    };
    const { setting, algorithm, arm } = run;
    const check = (key: string, free: (other: Run) => readonly string[]): void =>
      refuseDifference(first(key), run, [...IDLE, ...free(first(key))], at);
    const ofArms = (other: Run): readonly string[] =>
      [arm, other.arm].some((name) => name.includes("+kl=")) ? OF_KL_ARMS : OF_ARMS;
    check(`${setting}/${arm}`, () => []);
    check(`${setting}/${algorithm}/`, ofArms);
    check(`${setting}//`, (other) => [...ofArms(other), ...OF_ALGORITHMS]);
  }
}

function refuseDifference(a: Run, b: Run, free: readonly string[], at: number | undefined): void {
  if (a === b) return;
  const [one, other] = [a, b].map(({ folder, settings }) => claimedSettings(folder) ?? settings);
  if (one === undefined || other === undefined) return;
  const schedules = [one, other].map((settings) => valueAt(settings, ["optimizer", "schedule"]));
  // A constant learning rate does not depend on how long the run was to be.
  const open =
    at !== undefined && schedules.every((name) => name === "constant")
      ? [...free, "updates"]
      : free;
  const [from, to] = [one, other].map((settings) => without(settings, open)) as [
    SettingsTree,
    SettingsTree,
  ];
  const found = differences(from, to).map(
    ({ path, from: was, to: is }) => `${flagOf(["train", ...path])} ${show(was)} and ${show(is)}`,
  );
  const sizes = [a.evaluation, b.evaluation];
  if (sizes[0] !== undefined && sizes[1] !== undefined)
    for (const [name, flag] of [
      ["tasks", "--eval-tasks"],
      ["rounds", "--eval-rounds"],
    ] as const)
      if (sizes[0][name] !== sizes[1][name])
        found.push(`${flag} ${sizes[0][name]} and ${sizes[1][name]}`);
  if (found.length > 0)
    throw new UserError(
      `${a.folder} and ${b.folder} cannot be compared, because they differ in more than their arm and seed: ${found.join("; ")}. Use the same settings for both, or keep them in two comparisons.`,
    );
}

const without = (settings: SettingsTree, paths: readonly string[]): SettingsTree =>
  paths.reduce(
    (tree, path) =>
      valueAt(tree, path.split(".")) === undefined
        ? tree
        : withValueAt(tree, path.split("."), undefined),
    settings,
  );
