import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Where tests are. */
const FOLDERS = ["packages", "tests", "examples"];

/** The files with this suffix, alone or among others: `NAME.slow.test.ts`, `NAME.slow.apart.test.ts`. */
const named = (suffix: string): string[] =>
  FOLDERS.map((folder) => `${folder}/**/*.${suffix}{,.*}.test.ts`);
const all = FOLDERS.map((folder) => `${folder}/**/*.test.ts`);
const attacks = ["tests/attacks/**/*.test.ts"];

/**
 * What `vitest run --mode MODE` runs. Slow tests start other programs, train as a reader would or between several
 * engines; `.ci/run` has them. Those of the night replay whole recordings and compare whole programs. Naming a file
 * runs it in every mode.
 */
const MODES: Readonly<Record<string, { readonly include: string[]; readonly exclude: string[] }>> =
  {
    test: { include: all, exclude: [...named("slow"), ...named("nightly"), ...attacks] },
    slow: { include: [...named("slow"), ...attacks], exclude: [] },
    nightly: { include: named("nightly"), exclude: [] },
    attacks: { include: attacks, exclude: [] },
  };

/** What a test file says if it takes long: it starts processes or engines, or it trains. */
const TAKES_LONG =
  /\b(spawn\w*|execFile\w*|trainRun|trainAgent|createEmbeddedEngine|createSessions|runCli)\(/;

/**
 * Long files first, so that no core is idle at the end. Without times of an earlier run, Vitest
 * begins with the largest files, and the longest of them all is among the small ones.
 */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) => {
      const own = sorted.filter((file) => file.project === project);
      const isLong = new Map(
        own.map((file) => [file, TAKES_LONG.test(readFileSync(file.moduleId, "utf8"))]),
      );
      return [
        ...own.filter((file) => isLong.get(file)),
        ...own.filter((file) => !isLong.get(file)),
      ];
    });
  }
}

/**
 * A test calls most functions too seldom to be worth V8's optimising compiler, which works in every thread of every
 * engine anew. So functions must be 16 times as busy as usual before they are optimised.
 */
const execArgv = ["--interrupt-budget=1056000"];
const each = { testTimeout: 240_000, hookTimeout: 240_000, pool: "forks", execArgv };
const setup = "tests/properties.ts";
/** Loads every world, for those that share a process; the others import it if they need it. */
const worlds = "packages/pawl/src/cli/all-worlds.ts";

export default defineConfig(({ mode }) => {
  const isNamed = process.argv.some((argument) => argument.endsWith(".test.ts"));
  const { include, exclude } = isNamed ? { include: all, exclude: [] } : MODES[mode]!;
  // A file that changes its process for good (modules, variables, plugins) or measures it has the suffix `apart`, and a
  // process of its own. The others share one per core, so that what they import is loaded once and not 250 times.
  const apart = named("apart");
  const others = { include, exclude: [...exclude, ...apart] };
  const own = {
    include,
    exclude: [...exclude, ...FOLDERS.map((one) => `${one}/**/!(*.apart).test.ts`)],
  };
  return {
    test: {
      globalSetup: ["tests/build.ts", "tests/temporary.ts"],
      // By default one core is left idle, which on two cores is half of them.
      maxWorkers: "100%",
      sequence: { sequencer: LongFilesFirst },
      // Sources without their types are kept in node_modules, by their contents.
      experimental: { fsModuleCache: true },
      projects: [
        {
          test: {
            ...each,
            name: "shared",
            isolate: false,
            setupFiles: [worlds, setup],
            ...others,
          },
        },
        { test: { ...each, name: "apart", setupFiles: [setup], ...own } },
      ],
    },
  };
});
