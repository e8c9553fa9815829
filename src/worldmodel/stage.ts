/** Stages of a longer recipe, each a run folder: done ones are kept, interrupted ones go on. */
import { hasManifest, readManifest } from "../runs/manifest.js";

/** Runs a stage unless its folder says that it is done. */
export async function stage(
  folder: string,
  run: (folder: string, resume: boolean) => Promise<void>,
): Promise<void> {
  const found = hasManifest(folder);
  if (found && readManifest(folder).status === "done") return;
  await run(folder, found);
}
