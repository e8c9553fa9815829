import { existsSync, readFileSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { setFlagsFromString } from "node:v8";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { envConfig } from "@pawl/core/envs/registry.js";
import type { Trial } from "@pawl/ui/server/api.js";
import { createPlay, type Play } from "@pawl/ui/server/play.js";
import { createUiServer, randomKey } from "@pawl/ui/server/server.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { envKindOf } from "./env-options.js";
import { type Io, print, warn } from "./io.js";
import { aborted, close, listen } from "./listen.js";
import { runRecipe } from "./run-recipe.js";
import { requireKey } from "./serve-key.js";
import { DEFAULT_WORLD } from "./worlds.js";

const KEY_VARIABLE = "PAWL_UI_KEY";

/** `pawl ui`: runs, episodes and worlds in a browser. */
export const ui = defineCommand({
  name: "ui",
  summary: "show runs, episodes and worlds in a browser, live",
  positionals: "[FOLDER]",
  plugins: "none",
  details:
    "FOLDER holds the runs (default: runs). Serves this machine only, under an address with a random key, without a\nnetwork, and only reads, but for an index beside each record. --play allows playing and loading checkpoints (docs/ui.md).",
  options: (peek) =>
    z.strictObject({
      play: z
        .boolean()
        .default(false)
        .describe("let the page also play worlds and ask checkpoints what they expect"),
      env: envConfig(envKindOf(peek))
        .optional()
        .describe("world to play with options of its own; others have their defaults"),
      host: z.string().default("127.0.0.1").describe("address to listen on"),
      port: z
        .int()
        .min(0)
        .max(65_535)
        .default(8400)
        .describe("port to listen on (0: any free port)"),
      keyFile: z
        .string()
        .optional()
        .describe(`file with the key of the address (default: $${KEY_VARIABLE}, or a random key)`),
    }),
  examples: [
    ["pawl ui", "the runs in runs/, at the address it prints"],
    ["pawl ui --play", "with worlds to play and checkpoints to ask"],
    ["pawl ui experiments --port 0", "those of another folder, at any free port"],
    [`${KEY_VARIABLE}=… pawl ui --host 0.0.0.0`, "for other machines, with a key of your own"],
  ],
  async run({ config, positionals, io, signal }) {
    const [folder = "runs"] = positionals;
    if (!existsSync(folder))
      throw new ConfigError(
        `there is no folder ${folder}: name one that holds runs, or make a first run with pawl train --quick`,
      );
    if (config.env !== undefined && !config.play)
      throw new ConfigError("--env names a world to play: add --play, or leave it out");
    const own = keyOf(config.keyFile, io);
    requireKey(
      config.host,
      own,
      `set ${KEY_VARIABLE} to a secret first, or name a file that holds one with --key-file`,
    );
    const env = given(config.env);
    const play = config.play
      ? createPlay({ root: folder, env, defaultWorld: DEFAULT_WORLD })
      : undefined;
    await servePages({ ...config, folder, play, key: own, io, signal }, (address) =>
      print(io, `${address} shows ${folder}; Ctrl-C stops it`),
    );
    return exitCodes.done;
  },
});

/** What is served, and where. */
interface Pages {
  readonly folder: string;
  readonly play: Play | undefined;
  readonly trial?: Trial;
  readonly key?: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly io: Io;
  readonly signal: AbortSignal;
}

/** Serves the page until it is stopped. */
export async function servePages(
  { folder, play, trial, key = randomKey(), host, port, io, signal }: Pages,
  announce: (address: string) => void,
): Promise<void> {
  // Scanning a large record leaves much garbage: collect it early rather than grow.
  setFlagsFromString("--optimize-for-size");
  const server = createUiServer({
    folder,
    key,
    trial,
    ...(play !== undefined && { play: play.handle }),
    recipeOf: runRecipe,
    // A training on the same machine goes first; whoever waits for a page does not wait for it.
    onLongWork: () => setPriority(constants.priority.PRIORITY_BELOW_NORMAL),
    onFault: (error) => warn(io, `a page failed: ${(error as Error).message}`),
  });
  const at = await listen(server, port, host);
  announce(`http://${at.host}/${key}/`);
  // Until a browser asks: the settings' schemas, which the page of a run would have to wait for.
  setImmediate(() => runRecipe({ kind: "train", config: { env: { name: DEFAULT_WORLD } } }));
  await aborted(signal);
  // Pages that listen would keep it open.
  setImmediate(() => server.closeAllConnections());
  await close(server);
  await play?.close();
}

const given = (env: Readonly<Record<string, unknown>> | undefined) =>
  env === undefined ? undefined : { ...env, name: String(env.name) };

function keyOf(keyFile: string | undefined, { env }: Io): string | undefined {
  const from = keyFile === undefined ? `$${KEY_VARIABLE}` : `--key-file: ${keyFile}`;
  let key: string;
  try {
    key = keyFile === undefined ? (env[KEY_VARIABLE] ?? "") : readFileSync(keyFile, "utf8").trim();
  } catch (error) {
    throw new ConfigError(`--key-file: ${(error as Error).message}`);
  }
  if (key === "" && keyFile === undefined) return undefined;
  if (!/^[\w-]{8,200}$/.test(key))
    throw new ConfigError(
      `${from}: expected at least 8 letters, digits, - or _, because the key is part of an address`,
    );
  return key;
}
