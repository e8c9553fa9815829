import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Too slow for every `npm test`: they start other programs, train as a reader would or between several engines, or
 * replay long recordings.
 * `npm run test:slow` runs them and those of `tests/attacks`, and so does `.ci/run`; so does naming one.
 */
const SLOW = [
  "src/bench/compare.test.ts",
  "src/cli/default-recipe.test.ts",
  "src/cli/serve-model.test.ts",
  "src/envs/alfworld/golden.test.ts",
  "src/envs/scienceworld/scienceworld.test.ts",
  "src/envs/tau/golden.test.ts",
  "src/train/chat-run.test.ts",
  "src/train/remote-run.test.ts",
  "src/train/rwml-engines.test.ts",
  "src/train/sampler-run.test.ts",
  "tests/example-agents.test.ts",
  "tests/example-plugin.test.ts",
  "tests/examples.test.ts",
  "tests/exports-python.test.ts",
  "tests/full-disk.test.ts",
  "tests/hanging-world.test.ts",
  "tests/killed.test.ts",
  "tests/newcomer.test.ts",
  "tests/openenv.test.ts",
  "tests/own-environment.test.ts",
  "tests/process.test.ts",
  "tests/site.test.ts",
  "tests/smollm2.test.ts",
  "tests/telemetry.test.ts",
  "tests/terminal.test.ts",
  "tests/torch-comparison.test.ts",
  "tests/torch-lora.test.ts",
  "tests/torch-python.test.ts",
  "tests/torch-scoring.test.ts",
  "tests/torch-server-faults.test.ts",
  "tests/torch-server.test.ts",
  "tests/trackers.test.ts",
  "tests/ui-browser.test.ts",
];

/**
 * What a test file says if it changes its process for good (modules that are replaced, variables,
 * plugins, agents), measures it, or needs it unchanged. Such a file gets a process of its own. The others share one per
 * core, so that what they import is loaded once and not 250 times.
 */
const CHANGES_ITS_PROCESS =
  /\bvi\.(mock|doMock|stub\w+|useFakeTimers|spyOn)\(|\bprocess\.(env\S* = |chdir|memoryUsage)|\bdelete process\.env|\bglobalThis\.\w+ = |\b(register[A-Z]\w*|loadPlugins?|trainAgent|addPlugin\w*)\(|"--(plugin|agent)"|\bneeds a process of its own\b/;

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

const all = ["src", "tests", "examples"].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(folder, name).replaceAll("\\", "/")),
);
/**
 * A test calls most functions too seldom to be worth V8's optimising compiler, which works in every thread of every
 * engine anew. So functions must be 16 times as busy as usual before they are optimised.
 */
const execArgv = ["--interrupt-budget=1056000"];
const setupFiles = ["src/cli/all-worlds.ts"];
const each = { testTimeout: 240_000, hookTimeout: 240_000, pool: "forks", execArgv, setupFiles };

export default defineConfig(({ mode }) => {
  const attacks = all.filter((file) => file.startsWith("tests/attacks/"));
  const slow = [...SLOW, ...attacks];
  const tests =
    mode === "attacks"
      ? attacks
      : mode === "slow"
        ? slow
        : all.filter((file) => !slow.includes(file) || process.argv.includes(file));
  const apart = tests.filter((file) => CHANGES_ITS_PROCESS.test(readFileSync(file, "utf8")));
  return {
    test: {
      globalSetup: ["tests/build.ts", "tests/temporary.ts"],
      // By default one core is left idle, which on two cores is half of them.
      maxWorkers: "100%",
      sequence: { sequencer: LongFilesFirst },
      // Sources without their types are kept in node_modules, by their contents.
      experimental: { fsModuleCache: true },
      projects: [
        { test: { ...each, name: "shared", isolate: false, include: tests, exclude: apart } },
        { test: { ...each, name: "apart", include: apart } },
      ],
    },
  };
});
