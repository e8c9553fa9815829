/** Checkpoints of a run: folders that are complete or absent; the newest few and the best are kept. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readRegularText } from "../files/regular-file.js";
import { brokenSeals, requireSeals, sealFolder, sealOf } from "./checksums.js";
import { hasManifest, readManifest } from "./manifest.js";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

/** How many of the newest to keep: two, so that one is complete while the next is being written. */
const KEPT = 2;

/** The state of training when a checkpoint was written. */
export interface CheckpointState {
  /** Updates done. */
  readonly updates: number;
  readonly optimizerSteps: number;
  /** The episodes of the next update are in the record already: weights before these drew them. */
  readonly ahead?: true;
  /** Mean success of the evaluation of these weights, if they were evaluated. */
  readonly success?: number;
  /** When its run was created, and the checksum of that run's reference: files get mixed up. */
  readonly run?: string;
  readonly reference?: string;
}

/** A checkpoint on disk. */
export interface Checkpoint {
  readonly folder: string;
  readonly state: CheckpointState;
}

/** Writes a checkpoint: `write` fills a folder, which is renamed once it is complete. */
export async function saveCheckpoint(
  run: string,
  state: CheckpointState,
  write: (folder: string) => Promise<void>,
  keep = KEPT,
): Promise<string> {
  const parent = join(run, "checkpoints");
  const folder = join(parent, nameOf(state.updates));
  const temporary = `${folder}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  try {
    await write(temporary);
    writeSmallFile(join(temporary, "state.json"), `${JSON.stringify(state)}\n`);
    sealFolder(temporary);
  } catch (error) {
    // On a full disk its room is needed, to write how the run ended.
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(temporary, folder);
  const best = bestCheckpoint(run)?.folder;
  for (const old of wholeNames(parent)
    .slice(0, -keep)
    .map((name) => join(parent, name)))
    if (old !== best) rmSync(old, { recursive: true });
  return folder;
}

/** The checkpoint that did best in its evaluation, the newest of equals; undefined if none was evaluated. */
export function bestCheckpoint(run: string): Checkpoint | undefined {
  const parent = join(run, "checkpoints");
  let best: Checkpoint | undefined;
  for (const name of existsSync(parent) ? wholeNames(parent) : []) {
    const checkpoint = readableCheckpoint(join(parent, name));
    const success = checkpoint?.state.success;
    if (success !== undefined && success >= (best?.state.success ?? 0)) best = checkpoint;
  }
  return best;
}

/** The newest complete checkpoint of a run, if there is one. */
export function latestCheckpoint(run: string): Checkpoint | undefined {
  const folder = checkpointFolders(run).at(-1);
  return folder === undefined ? undefined : readCheckpoint(folder);
}

/** A damaged one is refused when it is needed, which an old one may never be. */
function readableCheckpoint(folder: string): Checkpoint | undefined {
  try {
    return readCheckpoint(folder);
  } catch (error) {
    if (error instanceof RunError) return undefined;
    throw error;
  }
}

/** What a checkpoint says about the run that it belongs to. */
export function tiesOf(run: string): Pick<CheckpointState, "run" | "reference"> {
  // Somebody may have deleted the folder: whoever records to it says so.
  if (!hasManifest(run)) return {};
  const reference = sealOf(join(run, "reference"));
  return { run: readManifest(run).createdAt, ...(reference !== undefined && { reference }) };
}

/** Says so if a checkpoint, or the reference of its run, is another run's; older ones do not know. */
export function foreignCheckpoint(run: string, { folder, state }: Checkpoint): string | undefined {
  const own = tiesOf(run);
  if (state.run !== undefined && state.run !== own.run)
    return `${folder} is of another run: that one was started at ${state.run}, this one at ${own.run}. Restore the right one, or remove it to resume from the checkpoint before it.`;
  if (state.reference !== undefined && state.reference !== own.reference)
    return `${join(run, "reference")} is not the one that ${folder} was trained with: its checksums are ${own.reference === undefined ? "missing" : "others"}. Restore it.`;
  return undefined;
}

/** Says so if the first of some records names another run; those of older versions name none. */
export function foreignRecords(run: string, path: string, first: unknown): string | undefined {
  const { run: named } = tiesOf(run);
  const { run: found } = (first ?? {}) as Pick<CheckpointState, "run">;
  return found === undefined || named === undefined || found === named
    ? undefined
    : `${path} is of another run: that one was started at ${found}, this one at ${named}`;
}

/** Refuses a checkpoint whose files were lost or changed since it was written, or another run's. */
export function requireWhole(run: string, checkpoint: Checkpoint): void {
  const { folder } = checkpoint;
  requireSeals(folder, `Remove ${folder} to resume from the checkpoint before it.`);
  const foreign = foreignCheckpoint(run, checkpoint);
  if (foreign !== undefined) throw new RunError(foreign);
}

/** All complete checkpoints of a run, oldest first. */
export function checkpointFolders(run: string): readonly string[] {
  const parent = join(run, "checkpoints");
  return existsSync(parent) ? wholeNames(parent).map((name) => join(parent, name)) : [];
}

/** The checkpoint written after this many updates, if it still exists. */
export function checkpointAfter(run: string, updates: number): Checkpoint | undefined {
  const folder = join(run, "checkpoints", nameOf(updates));
  return existsSync(folder) ? readCheckpoint(folder) : undefined;
}

/** Reads a checkpoint's state. */
export function readCheckpoint(folder: string): Checkpoint {
  const path = join(folder, "state.json");
  const [broken] = brokenSeals(folder, "state.json");
  try {
    if (broken !== undefined) throw new Error(broken);
    return { folder, state: JSON.parse(readRegularText(path)) as CheckpointState };
  } catch (error) {
    throw new RunError(
      `${path} cannot be read (${(error as Error).message}): remove ${folder} to resume from the one before`,
      { cause: error },
    );
  }
}

const nameOf = (updates: number): string => String(updates).padStart(6, "0");

function wholeNames(parent: string): string[] {
  return readdirSync(parent)
    .filter((name) => /^\d+$/.test(name))
    .sort();
}
