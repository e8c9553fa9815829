/** A task in a terminal: what is asked, the files at the start, and the script that scores the end. */
import type { Task } from "@pawl/core/envs/env.js";
import type { Random } from "@pawl/core/random.js";

export interface TerminalTask {
  readonly id: string;
  readonly family: string;
  /** From 1, a few short commands, to 3. */
  readonly difficulty: number;
  readonly instruction: string;
  /** Texts by their absolute paths. */
  readonly files: Texts;
  /** Where the shell begins, and where the test runs. */
  readonly folder: string;
  /**
   * A script that scores a copy of the final state: exit code 0 is success. It may write a number
   * from 0 to 1 to `REWARD_FILE`, as Harbor's tests do.
   */
  readonly test: string;
  /** Commands that solve it, one per step. */
  readonly solution: readonly string[];
  /** Modes by path, of files that are not like others. */
  readonly modes?: Readonly<Record<string, number>>;
  /** Command lines that make the machine ready, in order; what they export stays. */
  readonly prepare?: readonly string[];
  /** Files beside the test, by their paths there. */
  readonly testFiles?: Texts;
  /** What the test is told in variables. */
  readonly testVariables?: Readonly<Record<string, string>>;
}

/** Where a test writes its reward, in Harbor and here. */
export const REWARD_FILE = "/logs/verifier/reward.txt";

/** Tasks by split, and their contents. */
export interface TaskSource {
  readonly lists: Readonly<Record<string, () => readonly Task[]>>;
  load(task: Task): TerminalTask;
}

/** A word of a command line that means these characters. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Texts by their paths, relative to the task's folder. */
export type Texts = Readonly<Record<string, string>>;

/** What a family makes of a seed: a task but for its name and place. */
export interface Made {
  readonly instruction: string;
  readonly before: Texts;
  /** The wanted texts; null: any text will do, as far as the conditions go. */
  readonly after: Readonly<Record<string, string | null>>;
  readonly solution: readonly string[];
  /** Conditions on the final state besides its texts, in the shell's words. */
  readonly conditions?: readonly string[];
}

/** Makes tasks of one kind, from 1, the easiest, to 3. */
export type Family = (random: Random, difficulty: number) => Made;

/** Families by the split that has them; no family is in two. */
export interface SplitFamilies {
  readonly train: Readonly<Record<string, Family>>;
  readonly valid: Readonly<Record<string, Family>>;
  readonly test: Readonly<Record<string, Family>>;
}

/**
 * The script that compares the final state with the wanted one. Every file that was to change, appear
 * or go is a goal, and so is every condition; the reward is the share of goals reached. A file that was
 * to stay as it was and did not makes it 0. Files that nobody asked for are nobody's business.
 */
export function scoringScript({ before, after, conditions = [] }: Made): string {
  const same = ([path, text]: readonly [string, string]): string =>
    `[ "$(cat ${quoted(path)})" = ${quoted(text.replace(/\n+$/, ""))} ]`;
  const texts = Object.entries(after).filter((one): one is [string, string] => one[1] !== null);
  const changed = texts.filter(([path, text]) => before[path] !== text);
  const kept = texts.filter(([path, text]) => before[path] === text);
  const gone = Object.keys(before).filter((path) => after[path] === undefined);
  const goals = [
    ...changed.map(same),
    ...gone.map((path) => `[ ! -e ${quoted(path)} ]`),
    ...conditions,
  ];
  const shares = goals.map((_, n) => `${n}) reward=${Number((n / goals.length).toFixed(4))};;`);
  return [
    "#!/bin/bash",
    "reached=0",
    ...goals.map((goal) => `${goal} && reached=$((reached + 1))`),
    ...kept.map((one) => `${same(one)} || reached=0`),
    `case $reached in ${shares.join(" ")} *) reward=1;; esac`,
    "mkdir -p /logs/verifier",
    `echo $reward > ${REWARD_FILE}`,
    `[ $reached = ${goals.length} ]`,
    "",
  ].join("\n");
}
