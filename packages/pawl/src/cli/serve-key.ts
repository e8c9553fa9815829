/** Where our servers listen, and the key that they ask for: loopback without one. */
import { readFileSync } from "node:fs";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { isLoopback } from "@pawl/core/http/http-access.js";
import { z } from "zod";
import type { Io } from "./io.js";

/** The variable that holds the key; unlike the engine's, clients are given this one. */
export const KEY_VARIABLE = "PAWL_SERVE_KEY";

/** Settings that servers share. */
export const host = z.string().default("127.0.0.1").describe("address to listen on");
export const port = z
  .int()
  .min(0)
  .max(65_535)
  .default(8000)
  .describe("port to listen on (0: any free port)");
export const keyFile = z
  .string()
  .optional()
  .describe(`file with the key that clients must send (default: $${KEY_VARIABLE}, or no key)`);

/** A shorter key can be guessed over a network. */
const SHORTEST_KEY = 16;

/** Refuses an address that others can reach without a key, or with one that can be guessed. */
export function requireKey(host: string, key: string | undefined, how: string): void {
  if (isLoopback(host)) return;
  const reached = `--host: ${host} can be reached from other machines`;
  if (!key) throw new ConfigError(`${reached}: ${how}`);
  if (key.length < SHORTEST_KEY)
    throw new ConfigError(
      `${reached}, and its key has ${key.length} characters: expected at least ${SHORTEST_KEY}, so that it cannot be guessed (openssl rand -hex 16 makes one)`,
    );
}

/** The key of a server, if it has one; an address that others can reach needs one. */
export function serveKey(
  { host, keyFile }: { readonly host: string; readonly keyFile?: string | undefined },
  { env }: Io,
): string | undefined {
  const key = keyFile === undefined ? env[KEY_VARIABLE] || undefined : keyIn(keyFile);
  requireKey(
    host,
    key,
    `set ${KEY_VARIABLE} to a secret first, or name a file that holds one with --key-file`,
  );
  return key;
}

function keyIn(file: string): string {
  let key: string;
  try {
    key = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new ConfigError(`--key-file: ${(error as Error).message}`);
  }
  if (key === "") throw new ConfigError(`--key-file: ${file} is empty; expected a secret`);
  return key;
}
