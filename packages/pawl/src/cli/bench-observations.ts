import { appendFileSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { flagOf } from "@pawl/core/config/settings.js";
import { builtFile } from "@pawl/core/processes/calls.js";
import { algorithms, numbered, variants } from "@pawl/studies/arms.js";
import { type ComparisonProgress, compare, type EngineServers } from "@pawl/studies/compare.js";
import { type ComparisonOptions, comparisonOptions } from "@pawl/studies/options.js";
import { findResults, sumUp } from "@pawl/studies/results.js";
import { conditions } from "@pawl/studies/settings.js";
import { startParts } from "@pawl/studies/start-parts.js";
import { writeResults } from "@pawl/studies/write-results.js";
import { isRemote } from "@pawl/training/engines.js";
import { z } from "zod";
import { quick } from "../../../../recipes/quick.js";
import { defineCommand, exitCodes } from "./command.js";
import { recipeOf } from "./default-recipe.js";
import { envKindOf, envNameOf } from "./env-options.js";
import { duration, percent } from "./format.js";
import { type Io, note, print, warn } from "./io.js";
import { createLive } from "./live.js";
import { serverSettings } from "./serve-engine.js";
import {
  findTorchPython,
  startTorchServer,
  type TorchPython,
  type TorchServer,
  type TorchServerOptions,
} from "./torch-server.js";
import { DEFAULT_WORLD } from "./worlds.js";

/** How to start the servers. */
interface ServerPoolOptions
  extends Omit<TorchServerOptions, "model" | "name" | "host" | "port" | "nproc" | "checkpoints"> {
  readonly count: number;
  readonly python: TorchPython;
  /** The comparison's folder, for checkpoints and the servers' output. */
  readonly out: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Callback for output that cannot be kept, once. */
  readonly onProblem: (message: string) => void;
}

/** Servers that are started when they are needed, and again if they have ended. */
interface ServerPool extends EngineServers {
  stop(): Promise<void>;
}

/** Where the servers' output is, in the comparison's folder. */
const SERVER_LOGS = "servers";

/** Makes a pool; no server runs yet. */
export function createServerPool(options: ServerPoolOptions): ServerPool {
  const { count, python, out, environment, onProblem, ...settings } = options;
  const servers = new Map<number, Promise<TorchServer>>();
  let isLost = false;
  const keep = (line: string, path: string): void => {
    try {
      mkdirSync(dirname(path), { recursive: true });
      appendFileSync(path, `${line}\n`);
    } catch (error) {
      // The runs are worth more than what their servers say.
      if (!isLost) onProblem(`what the servers say is lost: ${(error as Error).message}`);
      isLost = true;
    }
  };
  const start = (place: number): Promise<TorchServer> => {
    const log = join(out, SERVER_LOGS, `${place + 1}.log`);
    // All share the folder, so that any of them can continue any run.
    const checkpoints = resolve(out, "checkpoints");
    const placed = { ...settings, checkpoints, host: "127.0.0.1", port: 0, nproc: 1 };
    return startTorchServer(python, placed, environment, (line) => keep(line, log));
  };
  return {
    count,
    async open(place) {
      const known = await servers.get(place)?.catch(() => undefined);
      if (known !== undefined && isRunning(known)) return known.url;
      const started = start(place);
      servers.set(place, started);
      return (await started).url;
    },
    async stop() {
      const started = await Promise.allSettled(servers.values());
      await Promise.all(
        started.map((one) => (one.status === "fulfilled" ? one.value.stop() : undefined)),
      );
    },
  };
}

const isRunning = ({ process: { exitCode, signalCode } }: TorchServer): boolean =>
  exitCode === null && signalCode === null;

const listed = (entries: readonly (readonly [string, string])[]): readonly string[] =>
  entries.map(([name, does]) => `  ${name.padEnd(14)} ${does}`);

const servers = {
  servers: z
    .int()
    .min(1)
    .optional()
    .describe("start this many PyTorch servers on this machine, one run each at a time"),
  server: z.strictObject(serverSettings).prefault({}),
};

/** `pawl bench observations`: ways to learn from observations, over seeds. */
export const benchObservations = defineCommand({
  name: "bench observations",
  summary: "compare ways to learn from observations, and learning without, over seeds",
  positionals: "[FOLDER…]",
  details: [
    "Trains every arm with every seed from the same start, in concurrent processes, and writes results.json, results.md",
    "and curves to --out. Repeated, it keeps finished runs, resumes killed ones and adds seeds or arms. With FOLDERs, it",
    "runs nothing and merges the results of several --out folders. The runs use recipes/quick.ts, or the recipe of",
    "--train.env.",
    "",
    "Settings, joined by + (noise+two-step):",
    ...listed(Object.entries(conditions).map(([name, { does }]) => [name, does])),
    `Algorithms: ${algorithms().join(", ")}. Arms, joined by + (ce+alpha=0.5):`,
    ...listed([
      ...Object.entries(variants).map(([name, { does }]) => [name, does] as const),
      ...Object.entries(numbered).map(([name, { does }]) => [`${name}=NUMBER`, does] as const),
    ]),
    "Arms with another start, alone (rwml) or with the above (rwml+paw):",
    ...listed(Object.entries(startParts)),
  ].join("\n"),
  base({ peek }) {
    const env = envNameOf(peek, "train.env.name");
    const { content, ...recipe } =
      env === DEFAULT_WORLD
        ? { path: "recipes/quick.ts", content: quick, file: "instead" as const }
        : recipeOf(env, (path) => peek(`train.${path}`));
    return { ...recipe, content: { train: content } };
  },
  options: (peek) => comparisonOptions(envKindOf(peek, "train.env.name")).extend(servers),
  examples: [
    ["pawl bench observations --seeds 0,1,2,3,4 --jobs 8", "GRPO, with PaW, with fixed λ, with CE"],
    [
      "pawl bench observations --algorithms gigpo,rloo,ppo --arms plain,paw,echo",
      "the other algorithms",
    ],
    [
      "pawl bench observations --settings actions-only --arms plain,actobs,rwml,paw",
      "observations before RL, against during RL",
    ],
    ["pawl bench observations --settings sparse --arms plain,paw,paw+alpha=0.5", "rare rewards"],
    [
      "pawl bench observations --train.env webshop --arms plain,paw,echo",
      "another world, with its own recipe",
    ],
    [
      "pawl bench observations --settings small --servers 4",
      "a larger model, four runs at a time on this machine's GPU; needs Python with PyTorch",
    ],
    [
      "pawl bench observations --part 1/4 --out runs/part-1",
      "a quarter of the runs, on one of four machines",
    ],
    [
      "pawl bench observations --seeds 0,1,2,3,4,5,6,7 --finished runs/part-1,runs/part-2 --part 1/2 --out runs/more",
      "later, more seeds: half of what is not in these folders",
    ],
    ["pawl bench observations runs/part-1 runs/part-2 --out runs/all", "merge the parts"],
    [
      "pawl bench observations runs/observations --at 50 --out runs/at-50",
      "as it was after 50 updates, cut-off runs too",
    ],
  ],
  async run({ config, positionals, flags, io, signal }) {
    if (positionals.length > 0) refuseSettingsOfRuns(flags);
    const folders = positionals.length > 0 ? positionals : [config.out, ...config.finished];
    const command = `pawl ${process.argv.slice(2).join(" ")}`;
    const { goal, at } = config;
    if (at !== undefined && positionals.length === 0)
      throw new ConfigError(
        "--at: compares runs that are there; name their folders (pawl bench observations FOLDER … --at 50), or leave it out",
      );
    let failed: readonly string[] = [];
    if (positionals.length === 0) {
      const program = builtFile("main");
      const pool = await serverPool(config, io);
      const view = comparisonProgress(io);
      try {
        failed = await compare(config, { program, signal, servers: pool, ...view });
      } catch (error) {
        if (signal.aborted) warn(io, "interrupted; repeat the command to resume");
        throw error;
      } finally {
        view.end();
        await pool?.stop();
      }
    }
    const found = findResults(folders, (message) => warn(io, message), at);
    if (found.left.length > 0)
      warn(io, `without an evaluation after ${at} updates, and left out: ${found.left.join(", ")}`);
    if (found.jobs.length > 0) {
      const results = sumUp(found, { command, goal, ...(at !== undefined && { at }) });
      for (const path of writeResults(results, config.out)) print(io, `wrote ${path}`);
    } else if (at === undefined) warn(io, `no finished run in ${folders.join(", ")}`);
    else warn(io, `no run in ${folders.join(", ")} was evaluated after ${at} updates`);
    if (failed.length > 0) warn(io, `failed: ${failed.join(", ")}; repeat the command to retry`);
    return failed.length === 0 && found.jobs.length > 0 ? exitCodes.done : exitCodes.failed;
  },
});

/** Servers for the runs, if there are to be some. */
async function serverPool(
  config: ComparisonOptions & z.output<z.ZodObject<typeof servers>>,
  io: Io,
): Promise<ServerPool | undefined> {
  const { servers: count, server, engines, threads, out, train } = config;
  if (count === undefined) {
    const idle = Object.entries(server).find(([, value]) => value !== undefined && value !== false);
    if (idle === undefined) return undefined;
    throw new ConfigError(
      `${flagOf(["server", idle[0]])}: has no effect without --servers, the number to start`,
    );
  }
  if (engines !== undefined)
    throw new ConfigError("--servers: starts servers of its own; leave out --engines, or this");
  if (isRemote(train.engine))
    throw new ConfigError(
      `--servers: starts servers of its own, and the runs are to use ${train.engine.address}; leave one of them out`,
    );
  const { python: interpreter, ...settings } = server;
  const python = await findTorchPython(io.env, interpreter);
  if (!io.quiet)
    note(
      io,
      `engine servers: up to ${count} (PyTorch ${python.torch}); their output is in ${join(out, SERVER_LOGS)}`,
    );
  return createServerPool({
    ...{ ...settings, count, python, threads, out, environment: io.env },
    onProblem: (message) => warn(io, message),
  });
}

/** What counts where results are merged and nothing is run. */
const MERGING: readonly string[] = ["--at", "--goal", "--out"];

function refuseSettingsOfRuns(flags: readonly string[]): void {
  const idle = flags.find((flag) => !MERGING.includes(flag));
  if (idle !== undefined)
    throw new ConfigError(
      `${idle}: has no effect with FOLDERs, which are merged as they are without running anything; leave it out (${MERGING.join(", ")} count), or leave the folders out to run the comparison`,
    );
}

/** Shows the progress of a comparison; its methods fit the callbacks of `compare`. */
export function comparisonProgress(io: Io) {
  const { bold, dim } = io.colors;
  const startedAt = performance.now();
  let last: ComparisonProgress | undefined;
  const elapsed = (): number => (performance.now() - startedAt) / 1000;
  const overview = (): string => {
    const { done = 0, all = 0, doneNow = 0 } = last ?? {};
    const left = doneNow > 0 ? duration((elapsed() / doneNow) * (all - done)) : "–";
    return `${done.toFixed(1)} of ${all} runs (${percent(all === 0 ? 1 : done / all)}), ${duration(elapsed())} so far, ${left} left`;
  };
  const lines = (): readonly string[] => [
    bold(overview()),
    ...[...(last?.running ?? [])].map(([id, { text }]) => `${id}  ${dim(text)}`),
  ];
  const live = createLive(io, overview);
  return {
    onProgress(progress: ComparisonProgress): void {
      last = progress;
      live.draw(lines);
    },
    onEnd(id: string, outcome: "done" | Error): void {
      if (outcome !== "done") warn(io, `${id}: ${outcome.message}`);
      else if (!io.stderr.isTTY && !io.quiet) note(io, `${id} done; ${overview()}`);
    },
    end: () => live.end(io.stderr.isTTY ? lines() : []),
  };
}
