import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { checkRun } from "../runs/check-run.js";
import { defineCommand, exitCodes } from "./command.js";
import { print } from "./io.js";

/** `pawl check`: verifies a run folder. */
export const check = defineCommand({
  name: "check",
  summary: "verify a run folder: records, metrics, checkpoints",
  plugins: "none",
  worlds: "none",
  positionals: "RUN",
  details:
    "Reads everything and compares checksums; changes nothing. Exit code 1 if something is damaged or lost.",
  options: () =>
    z.strictObject({
      json: z.boolean().default(false).describe("print what was found as JSON"),
    }),
  examples: [["pawl check RUN", "what is whole, and what is lost"]],
  async run({ config, positionals, io }) {
    const [folder] = positionals;
    if (folder === undefined)
      throw new ConfigError("pawl check needs a run folder: pawl check RUN. pawl runs lists them.");
    const parts = checkRun(folder);
    const problems = parts.flatMap((part) => part.problems);
    if (config.json) print(io, JSON.stringify(parts, undefined, 2));
    else {
      const { green, red } = io.colors;
      for (const { part, found, problems } of parts) {
        print(io, `${problems.length === 0 ? green("✓") : red("✗")} ${part}: ${found}`);
        for (const problem of problems) print(io, `    ${problem}`);
      }
      print(io, problems.length === 0 ? "nothing is damaged" : `${problems.length} problems`);
    }
    return problems.length === 0 ? exitCodes.done : exitCodes.failed;
  },
});
