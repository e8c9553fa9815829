/** Stages of a longer recipe, each a run folder: done ones are kept, interrupted ones go on. */
import type { SettingsTree } from "../config/settings-tree.js";
import { hasManifest, readManifest } from "../runs/manifest.js";
import { resumeChanges } from "../train/resume.js";

/** A stage: its folder, its settings, and how to read those it was recorded with. */
export interface Stage {
  readonly folder: string;
  readonly config: SettingsTree;
  /** The setting that says how long it is. */
  readonly length: "updates" | "epochs";
  recorded(folder: string): SettingsTree;
}

/** Runs a stage unless its folder says that it is done, with these settings; tells whether it ran. */
export async function stage(
  { folder, config, length, recorded }: Stage,
  run: (resume: boolean) => Promise<void>,
): Promise<boolean> {
  const found = hasManifest(folder);
  if (found && readManifest(folder).status === "done") {
    // Other settings would have given other numbers than those that are kept.
    const changed = resumeChanges(recorded(folder), config, { folder, length });
    if (!(length in changed)) return false;
  }
  await run(found);
  return true;
}
