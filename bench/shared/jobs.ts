/** The jobs of a study: each makes a file or folder that others may need, several at once. */
import { existsSync, renameSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { runChild } from "@pawl/studies/child.js";

/** A thing to make, once what it needs is there. */
export interface Job {
  /** The folder or file that it makes. */
  readonly makes: string;
  readonly needs?: string | undefined;
  /** Writes it under another name. */
  make(partial: string): Promise<unknown>;
}

const run = (program: string, args: readonly string[]): Promise<string> =>
  runChild(args, { program, signal: new AbortController().signal });

/** One of our commands, in a process of its own; what it printed. */
export const pawl = (...args: readonly string[]): Promise<string> =>
  run(join("dist", "lib", "main.js"), args);

/** A part of a study that no command can do: `npm run bench -- ARGS`, in a process of its own. */
export const bench = (...args: readonly string[]): Promise<string> =>
  run(join("bench", "run.js"), args);

/** The machine and the day, as results name them. */
export const madeHere = (): { readonly machine: string; readonly date: string } => ({
  machine: `${cpus().length} × ${cpus()[0]?.model}`,
  date: new Date().toISOString().slice(0, 10),
});

/** Settings as flags. */
export function flagsOf(tree: object, path = "-"): readonly string[] {
  return Object.entries(tree).flatMap(([name, value]) => {
    const flag = `${path}${path === "-" ? "-" : "."}${name}`;
    return typeof value === "object" ? flagsOf(value, flag) : [flag, String(value)];
  });
}

/** So many at once are enough to leave no seed half done for long. */
const MANY = 8;

/**
 * Makes what is missing, so many at once, and returns what could not be made; the earliest job that
 * can begin does. With many at once, what others need comes before all else, so that at the end nobody
 * waits for a chain of jobs. What two jobs make is made once.
 */
export async function makeAll(jobs: readonly Job[], atOnce: number): Promise<readonly string[]> {
  const all = [...new Map(jobs.map((job) => [job.makes, job])).values()];
  const missing = all.filter(({ makes }) => !existsSync(makes));
  const isNeeded = ({ makes }: Job): boolean => missing.some(({ needs }) => needs === makes);
  const waiting =
    atOnce < MANY
      ? missing
      : [...missing.filter(isNeeded), ...missing.filter((job) => !isNeeded(job))];
  const failed: string[] = [];
  const running = new Set<Promise<void>>();
  while (waiting.length + running.size > 0) {
    const at = waiting.findIndex(({ needs }) => needs === undefined || existsSync(needs));
    if (at >= 0 && running.size < atOnce) {
      const [{ makes, make }] = waiting.splice(at, 1) as [Job];
      const partial = `${makes}.${process.pid}`;
      const from = performance.now();
      const job: Promise<void> = make(partial)
        .then(() => renameSync(partial, makes))
        .then(() => "done")
        .catch((error: Error) => {
          failed.push(makes);
          return `failed: ${error.message}`;
        })
        .then((how) => {
          running.delete(job);
          const seconds = ((performance.now() - from) / 1000).toFixed(0);
          process.stderr.write(`${makes} (${seconds} s) ${how}\n`);
        });
      running.add(job);
    } else if (running.size > 0) await Promise.race(running);
    else return [...failed, ...waiting.map(({ makes }) => makes)];
  }
  return failed;
}
