/**
 * Stages of a longer recipe, each a run folder: finished ones are kept, interrupted ones are
 * resumed.
 */
import type { SettingsTree } from "@pawl/core/config/settings-tree.js";
import { hasManifest, readManifest } from "@pawl/core/runs/manifest.js";
import { resumeChanges } from "@pawl/training/resume.js";

/** A stage: its folder, its settings, and how to read those it was recorded with. */
export interface Stage {
  readonly folder: string;
  readonly config: SettingsTree;
  /** The setting for its length. */
  readonly length: "updates" | "epochs";
  recorded(folder: string): SettingsTree;
}

/**
 * Runs a stage unless its folder says that it is done, with these settings; returns whether it ran.
 */
export async function stage(
  { folder, config, length, recorded }: Stage,
  run: (resume: boolean) => Promise<void>,
): Promise<boolean> {
  const found = hasManifest(folder);
  if (found && readManifest(folder).status === "done") {
    // Other settings would have given other numbers than the kept ones.
    const changed = resumeChanges(recorded(folder), config, { folder, length });
    if (!(length in changed)) return false;
  }
  await run(found);
  return true;
}
