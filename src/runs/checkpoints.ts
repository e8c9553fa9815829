/** Checkpoints of a run: folders that are complete or absent; the newest few and the best are kept. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { requireSeals, sealFolder } from "./checksums.js";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

/** How many of the newest to keep: two, so that one is complete while the next is being written. */
const KEPT = 2;

/** The state of training when a checkpoint was written. */
export interface CheckpointState {
  /** Updates done. */
  readonly updates: number;
  readonly optimizerSteps: number;
  /** The running mean of the policy's gradient norm, if world modelling is capped by it. */
  readonly policyGradient?: number;
  /** The episodes of the next update are in the record already: weights before these drew them. */
  readonly ahead?: true;
  /** Mean success of the evaluation of these weights, if they were evaluated. */
  readonly success?: number;
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
    const checkpoint = readCheckpoint(join(parent, name));
    const { success } = checkpoint.state;
    if (success !== undefined && success >= (best?.state.success ?? 0)) best = checkpoint;
  }
  return best;
}

/** The newest complete checkpoint of a run, if there is one. */
export function latestCheckpoint(run: string): Checkpoint | undefined {
  const folder = checkpointFolders(run).at(-1);
  return folder === undefined ? undefined : readCheckpoint(folder);
}

/** Refuses a checkpoint whose files were lost or changed since it was written. */
export function requireWhole({ folder }: Checkpoint): void {
  requireSeals(folder, `Remove ${folder} to resume from the checkpoint before it.`);
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
  try {
    return { folder, state: JSON.parse(readFileSync(path, "utf8")) as CheckpointState };
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
