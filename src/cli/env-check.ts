import { z } from "zod";
import { envChecks } from "../envs/conformance.js";
import { openEnvironment } from "../envs/open.js";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { print } from "./io.js";

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
