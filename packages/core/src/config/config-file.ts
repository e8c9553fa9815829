/** Configuration files: JSON, YAML, or a TypeScript or JavaScript module with a default export. */
import { closeSync, existsSync } from "node:fs";
import { extname, resolve } from "node:path";
import { openRegular, readRegularText } from "../files/regular-file.js";
import { importModule, MODULE_ENDINGS } from "../module-loader.js";
import { ConfigError } from "./config-error.js";

/** Reads a configuration file into plain data; the schema checks it later. */
export async function readConfigFile(path: string): Promise<Record<string, unknown>> {
  const content = await readAny(path);
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new ConfigError(`${path}: expected an object of settings, found ${describe(content)}`);
  }
  return content as Record<string, unknown>;
}

async function readAny(path: string): Promise<unknown> {
  const extension = extname(path);
  if (!existsSync(path))
    throw new ConfigError(`could not read the configuration: there is no file ${path}`);
  if (MODULE_ENDINGS.includes(extension)) return readModule(path);
  if (![".json", ".yaml", ".yml"].includes(extension)) {
    throw new ConfigError(
      `${path}: expected a file that ends in .json, .yaml, .yml, ${MODULE_ENDINGS.join(" or ")}`,
    );
  }
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    throw new ConfigError(`could not read the configuration: ${(error as Error).message}`);
  }
  try {
    return extension === ".json" ? JSON.parse(text) : (await import("yaml")).parse(text);
  } catch (error) {
    throw new ConfigError(`${path}: ${(error as Error).message.trim()}`);
  }
}

async function readModule(path: string): Promise<unknown> {
  try {
    closeSync(openRegular(path));
    return (await importModule(resolve(path))).default;
  } catch (error) {
    throw new ConfigError(`${path}: ${(error as Error).message}`, { cause: error });
  }
}

function describe(content: unknown): string {
  if (content === undefined) return "no default export";
  return content === null ? "nothing" : Array.isArray(content) ? "a list" : `a ${typeof content}`;
}
