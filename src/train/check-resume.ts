/** A resume on trial: refuses what the real one would refuse, and writes nothing. */
import { join } from "node:path";
import type { Episode } from "../rollout/episode.js";
import { readAlarms } from "../runs/alarms-file.js";
import type { Checkpoint } from "../runs/checkpoints.js";
import { requireSeals } from "../runs/checksums.js";
import { editedManifest } from "../runs/manifest.js";
import { readMetrics } from "../runs/metrics-file.js";
import { lostFolders } from "../runs/missing-parts.js";
import { checkRecords } from "../runs/record-file.js";
import { RunError } from "../runs/run-error.js";
import { openRun } from "../runs/run-folder.js";
import { requireFree } from "../runs/run-lock.js";
import { episodesPath, metricsPath } from "../runs/run-paths.js";
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
