import { availableParallelism } from "node:os";
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { FAMILIES, makeGames } from "../envs/textworld/make-games.js";
import { defineCommand, exitCodes } from "./command.js";
import { print } from "./io.js";

const families = Object.keys(FAMILIES);

/** `pawl env make`: makes games of TextWorld with its own generator. */
export const envMake = defineCommand({
  name: "env make",
  summary: "make games of TextWorld with its own generator",
  positionals: "textworld",
  details:
    "Calls tw-make of the Python package textworld, some 7 seconds per game. Games that exist are kept, so a stopped\ncommand can be repeated.",
  plugins: "none",
  options: () =>
    z.strictObject({
      family: z.enum(families).default("tw-simple").describe("kind of game"),
      arguments: z
        .string()
        .optional()
        .describe(
          "arguments for tw-make besides family, seed and output (default: usual ones of the family; for tw-simple those of Word-to-World)",
        ),
      count: z.int().min(1).default(10).describe("how many games"),
      seed: z.int().min(0).default(1).describe("seed of the first game; the others follow"),
      test: z
        .int()
        .min(0)
        .default(0)
        .describe("how many go into test/, the others into train/; 0: all into one folder"),
      prefix: z
        .string()
        .regex(/^[\w.-]*$/, "letters, digits, dots, dashes and underscores only")
        .optional()
        .describe(
          "file names before the seed (default: the family); what does not begin with tw- shows the status line",
        ),
      out: z.string().default("games").describe("folder to write to"),
      jobs: z
        .int()
        .min(1)
        .optional()
        .describe("games made at the same time (default: one per core)"),
      twMake: z.string().default("tw-make").describe("the generator's program"),
    }),
  examples: [
    ["pawl env make textworld --count 50 --test 10 --out games", "40 games to train, 10 to test"],
    [
      "pawl env make textworld --count 2700 --test 200 --prefix textworld_ --out games",
      "a stand-in for the games of Word-to-World",
    ],
    [
      'pawl env make textworld --family tw-coin_collector --arguments "--level 10"',
      "another family, with arguments of its own",
    ],
  ],
  async run({ config, positionals, io, signal }) {
    if (positionals[0] !== "textworld")
      throw new ConfigError(
        `pawl env make makes games of textworld only; got ${positionals[0] ?? "no name"}`,
      );
    if (config.test > config.count)
      throw new ConfigError(
        `--test ${config.test} is more than --count ${config.count}: fewer games must be for tests than there are`,
      );
    const { family, out, twMake, prefix } = config;
    const fileNames = prefix ?? `${family.startsWith("tw-") ? family : `tw-${family}`}-`;
    const given = config.arguments?.split(/\s+/).filter((word) => word !== "");
    await makeGames(
      {
        ...config,
        arguments: given,
        prefix: fileNames,
        folder: out,
        jobs: config.jobs ?? availableParallelism(),
        program: twMake,
      },
      (file) => print(io, `made ${file}`),
      signal,
    );
    print(io, `\npawl env info textworld --env textworld --env.data ${out} describes them`);
    return exitCodes.done;
  },
});
