/** What killed writers left in a run folder. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Names of ours for what is not complete, of earlier versions too. */
const TEMPORARY =
  /\.(?:[\da-f]{12}|[\da-f-]+\.[\da-f]{8})\.tmp$|^(?:triplets\.jsonl\.gz|\d+)\.tmp$|\.mending$/;

/**
 * Removes what killed writers left: whoever holds the lock is the only writer, so that nothing
 * temporary is anybody else's.
 */
export function removeLeftovers(folder: string): void {
  for (const place of [folder, join(folder, "checkpoints")])
    for (const name of existsSync(place) ? readdirSync(place) : [])
      if (TEMPORARY.test(name)) rmSync(join(place, name), { recursive: true, force: true });
}
