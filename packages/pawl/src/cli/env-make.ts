import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { envKinds } from "@pawl/core/envs/registry.js";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { FAMILIES, makeGames } from "@pawl/worlds/textworld/make-games.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { starterPlugin, starterTest } from "./env-starter.js";
import { print } from "./io.js";

/** `pawl env new`: a world of one's own to start from. */
export const envNew = defineCommand({
  name: "env new",
  summary: "write an environment of your own to start from, and its test",
  positionals: "NAME",
  details:
    "Writes NAME.ts, a plugin with a small commented world that works, and NAME.test.mjs. Existing files are left alone.",
  plugins: "none",
  options: () =>
    z.strictObject({
      dir: z.string().default(".").describe("folder to write to"),
    }),
  examples: [
    ["pawl env new guess", "writes guess.ts and guess.test.mjs"],
    ["pawl env check ./guess.ts", "then checks what was written"],
  ],
  async run({ config, positionals, io }) {
    const [name] = positionals;
    if (name === undefined || !/^[a-z][a-z0-9-]*$/.test(name))
      throw new ConfigError(
        `pawl env new needs a name of lowercase letters, digits and dashes, such as pawl env new guess; got ${name === undefined ? "none" : JSON.stringify(name)}`,
      );
    if (envKinds().some((kind) => kind.name === name))
      throw new ConfigError(`there is an environment "${name}" already: choose another name`);
    const files = [
      [join(config.dir, `${name}.ts`), starterPlugin(name)],
      [join(config.dir, `${name}.test.mjs`), starterTest(name)],
    ] as const;
    const taken = files.find(([path]) => existsSync(path))?.[0];
    if (taken !== undefined)
      throw new ConfigError(`${taken} exists already: choose another name, or remove it first`);
    mkdirSync(config.dir, { recursive: true });
    for (const [path, text] of files) {
      writeFileAtomicallySync(path, text);
      print(io, `wrote ${path}`);
    }
    const path = files[0][0];
    const shown = path.startsWith("/") ? path : `./${path}`;
    print(
      io,
      `\npawl env check ${shown} checks it; pawl play --plugin ${shown} --env ${name} plays it`,
    );
    return exitCodes.done;
  },
});

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
