import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { writeFileAtomicallySync } from "../atomic-file.js";
import { ConfigError } from "../config/config-error.js";
import { envKinds } from "../envs/registry.js";
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
