import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of this package: sources and compiled files are at different depths inside it. */
export function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder);
  return folder;
}

/** The version of this package. */
export function packageVersion(): string {
  const text = readFileSync(join(packageFolder(), "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
