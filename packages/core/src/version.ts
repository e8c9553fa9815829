import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

interface Manifest {
  readonly version: string;
  readonly private: boolean;
}

/** The folder of the published package: its rooms are private packages inside it. */
export function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (manifestIn(folder)?.private !== false) folder = dirname(folder);
  return folder;
}

function manifestIn(folder: string): Manifest | undefined {
  const path = join(folder, "package.json");
  if (!existsSync(path)) return undefined;
  return { private: false, ...(JSON.parse(readFileSync(path, "utf8")) as { version: string }) };
}

/** The version of this package. */
export function packageVersion(): string {
  return manifestIn(packageFolder())!.version;
}
