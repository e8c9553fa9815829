/**
 * Runs the mutants of one file against its tests, in a process that may hang: its parent watches.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createVitest, type Vitest } from "vitest/node";
import { type Mutant, mutantsOf, withMutant } from "./mutants.js";

/** What to run: a file, its tests, and which of its mutants. */
export interface Job {
  readonly file: string;
  /** Each list is run only if the previous ones noticed nothing. */
  readonly tests: readonly (readonly string[])[];
  readonly mutants: readonly number[];
}

/**
 * What a child reports, line by line: first that its tests pass unchanged, then each mutant's
 * result.
 */
export type Report =
  | { readonly ready: number }
  | { readonly mutant: number; readonly killed: boolean };

/** Runs a job and reports each mutant as it is done. */
export async function runJob({ file, tests, mutants }: Job, tell: (report: Report) => void) {
  const path = resolve(file);
  const source = readFileSync(path, "utf8");
  const all = mutantsOf(source);
  let active: Mutant | undefined;
  const vitest = await createVitest(
    "test",
    {
      config: false,
      watch: false,
      include: tests.flat(),
      pool: "forks",
      // One process for all test files: most of a short run is startup.
      isolate: false,
      maxWorkers: 1,
      bail: 1,
      testTimeout: 240_000,
      hookTimeout: 240_000,
      reporters: [{}],
    },
    {
      plugins: [
        {
          name: "mutant",
          enforce: "pre",
          transform: (_, id) =>
            id === path && active !== undefined ? withMutant(source, active) : undefined,
        },
      ],
    },
  );
  const started = performance.now();
  if (!(await passes(vitest, tests)))
    throw new Error(`the tests of ${file} fail without a mutant: ${tests.flat().join(", ")}`);
  tell({ ready: performance.now() - started });
  for (const mutant of mutants) {
    active = all[mutant];
    vitest.invalidateFile(path);
    tell({ mutant, killed: !(await passes(vitest, tests)) });
  }
  await vitest.close();
}

async function passes(vitest: Vitest, tests: Job["tests"]): Promise<boolean> {
  const all = await vitest.globTestSpecifications();
  for (const list of tests) {
    const paths = list.map((test) => resolve(test));
    const asked = all.filter(({ moduleId }) => paths.includes(moduleId));
    if (asked.length === 0) continue;
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(asked);
    if (unhandledErrors.length > 0 || !testModules.every((one) => one.ok())) return false;
  }
  return true;
}
