/** A resume on trial: refuses what the real one would refuse, and writes nothing. */
import { join } from "node:path";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { readAlarms } from "@pawl/core/runs/alarms-file.js";
import { lostFolders } from "@pawl/core/runs/check-run.js";
import type { Checkpoint } from "@pawl/core/runs/checkpoints.js";
import { requireSeals } from "@pawl/core/runs/checksums.js";
import { editedManifest } from "@pawl/core/runs/manifest.js";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { checkRecords } from "@pawl/core/runs/record-file.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { requireFree } from "@pawl/core/runs/run-lock.js";
import { episodesPath, metricsPath } from "@pawl/core/runs/small-file.js";
import {
  compareResumed,
  drawnGroups,
  NOTHING_DONE,
  type RunConfig,
  type RunKind,
  type RunOptions,
  resumedCheckpoint,
} from "./lifecycle.js";
import { REFERENCE, TOKENIZER } from "./saved-model.js";

const ignore = (): void => undefined;

/** Refuses a resume that would be refused, and writes nothing; for a dry run. */
export function checkResume<C extends RunConfig>(
  kind: RunKind<C>,
  config: C,
  options: RunOptions,
): Checkpoint | undefined {
  const { folder, forceUnlock } = options;
  requireFree(folder, { force: forceUnlock });
  const edited = editedManifest(folder);
  if (edited !== undefined) throw new RunError(edited);
  const checkpoint = resumedCheckpoint(options);
  const state = checkpoint?.state ?? NOTHING_DONE;
  compareResumed(kind, config, state, options);
  const [lost] = lostFolders(openRun(folder, ignore));
  if (lost !== undefined) throw new RunError(`${join(folder, lost)} is missing: restore it`);
  if (checkpoint !== undefined)
    for (const name of [REFERENCE, TOKENIZER]) requireSeals(join(folder, name), "Restore it.");
  checkRecords(
    episodesPath(folder),
    (record) => (record as Pick<Episode, "group">).group < drawnGroups(kind, state),
  );
  readMetrics(metricsPath(folder), ignore);
  readAlarms(folder, ignore);
  return checkpoint;
}
