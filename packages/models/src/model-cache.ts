import { homedir } from "node:os";
import { join } from "node:path";

/** Pawl's own cache of models; the hub's is the one that Python shares. */
export function modelCacheFolder(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string {
  return join(environment.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl", "models");
}
