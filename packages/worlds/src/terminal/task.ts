/** A task in a terminal: what is asked, the files at the start, and the script that scores the end. */
import type { Task } from "@pawl/core/envs/env.js";

/** A file of a task, by its absolute path. */
export interface TaskFile {
  readonly path: string;
  readonly text: string;
  /** Its permissions, such as 0o755 (default: 0o644). */
  readonly mode?: number;
}

export interface TerminalTask {
  readonly id: string;
  readonly family: string;
  /** From 1, a few short commands, to 3. */
  readonly difficulty: number;
  readonly instruction: string;
  readonly files: readonly TaskFile[];
  /** Where the shell begins, and where the test runs. */
  readonly folder: string;
  /**
   * A script that scores a copy of the final state: exit code 0 is success. It may write a number
   * from 0 to 1 to `REWARD_FILE`, as Harbor's tests do.
   */
  readonly test: string;
  /** Commands that solve it, one per step. */
  readonly solution: readonly string[];
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

/**
 * The script that compares the final state with the wanted one. Every file that was to change, appear
 * or go is a goal, and so is every condition; the reward is the share of goals reached. A file that was
 * to stay as it was and did not makes it 0. Files that nobody asked for are nobody's business.
 */
export function scoringScript(
  before: Texts,
  after: Texts,
  conditions: readonly string[] = [],
): string {
  const same = (path: string, text: string): string =>
    `[ "$(cat ${quoted(path)})" = ${quoted(text.replace(/\n+$/, ""))} ]`;
  const changed = Object.entries(after).filter(([path, text]) => before[path] !== text);
  const kept = Object.entries(after).filter(([path, text]) => before[path] === text);
  const gone = Object.keys(before).filter((path) => after[path] === undefined);
  const goals = [
    ...changed.map(([path, text]) => same(path, text)),
    ...gone.map((path) => `[ ! -e ${quoted(path)} ]`),
    ...conditions,
  ];
  const shares = goals.map((_, n) => `${n}) reward=${Number((n / goals.length).toFixed(4))};;`);
  return [
    "#!/bin/bash",
    "reached=0",
    ...goals.map((goal) => `${goal} && reached=$((reached + 1))`),
    ...kept.map(([path, text]) => `${same(path, text)} || reached=0`),
    `case $reached in ${shares.join(" ")} *) reward=1;; esac`,
    "mkdir -p /logs/verifier",
    `echo $reward > ${REWARD_FILE}`,
    `[ $reached = ${goals.length} ]`,
    "",
  ].join("\n");
}
