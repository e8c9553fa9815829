import { ConfigError } from "@pawl/core/config/config-error.js";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Mismatch } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { replayFile } from "@pawl/core/envs/replay.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { type Io, print } from "./io.js";

/** `pawl env check`: the conformance suite that every environment must pass. */
export const envCheck = defineCommand({
  name: "env check",
  summary: "check that an environment keeps the contract",
  positionals: "[NAME|FILE]",
  details:
    "Checks determinism by seed, exact and independent clones, admissible and invalid actions, leaks between episodes, an\nexpert that solves tasks, and clear errors.",
  takesPlugin: true,
  takesEnv: true,
  options: (peek) => z.strictObject({ env: envOptions(peek) }),
  examples: [
    ["pawl env check ./guess.ts", "the environment of a plugin"],
    ["pawl env check household --env.noise all", "one line per check, exit code 1 if one fails"],
  ],
  async run({ config, io }) {
    const { green, red } = io.colors;
    let failed = 0;
    for (const check of envChecks(
      openEnvironment({ ...config.env, name: String(config.env.name) }),
    )) {
      try {
        await check.run();
        print(io, `${green("✓")} ${check.name}`);
      } catch (error) {
        failed++;
        print(io, `${red("✗")} ${check.name}\n    ${(error as Error).message}`);
        if (check.essential) {
          print(io, "    The other checks need this one: correct it first.");
          break;
        }
      }
    }
    return failed === 0 ? exitCodes.done : exitCodes.failed;
  },
});

const SHOWN = 5;

/** `pawl env replay`: compares an environment with recorded traces. */
export const envReplay = defineCommand({
  name: "env replay",
  summary: "replay recorded traces and count the differences",
  details:
    "Each trace is a line {game, steps: [{action, obs, admissible, done, won}]} of a .jsonl or .jsonl.gz file. Prints the\ncounts and the first differences; exit code 1 if there are any.",
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      file: z.string().describe("trace file, .jsonl or .jsonl.gz"),
      data: z.string().optional().describe("data folder of the environment (short for --env.data)"),
    }),
  examples: [
    ["pawl env replay --env household --file traces.jsonl.gz", "compare every recorded state"],
    [
      "pawl env replay --env alfworld --data DIR --file golden.jsonl.gz",
      "with the games of a folder",
    ],
  ],
  async run({ config, io }) {
    const name = String(config.env.name);
    if (config.data !== undefined && !("data" in findEnvKind(name).options.shape)) {
      throw new ConfigError(`--data: the ${name} environment does not read data`);
    }
    const data = config.data === undefined ? {} : { data: config.data };
    const environment = openEnvironment({ ...config.env, ...data, name });
    const result = await replayFile(environment, config.file);
    const { traces, states, mismatches, notes = [] } = result;
    for (const note of notes) print(io, note);
    for (const mismatch of mismatches.slice(0, SHOWN)) printMismatch(mismatch, io);
    if (mismatches.length > SHOWN) print(io, `… and ${mismatches.length - SHOWN} more\n`);
    print(io, `traces ${traces}, states ${states}, mismatches ${mismatches.length}`);
    return mismatches.length === 0 ? exitCodes.done : exitCodes.failed;
  },
});

function printMismatch({ where, expected, found }: Mismatch, io: Io): void {
  const { bold, green, red } = io.colors;
  print(io, bold(where));
  print(io, `  ${green("expected")} ${JSON.stringify(expected)}`);
  print(io, `  ${red("found   ")} ${JSON.stringify(found)}\n`);
}
