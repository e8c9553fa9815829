/** Checkpoints of a run: folders that are complete or absent; only the newest few are kept. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

/** Two, so that one is complete while the next is being written. */
const KEPT = 2;

/** The state of training when a checkpoint was written. */
export interface CheckpointState {
  /** Updates done. */
  readonly updates: number;
  readonly optimizerSteps: number;
  /** The running mean of the policy's gradient norm, if world modelling is capped by it. */
  readonly policyGradient?: number;
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
): Promise<string> {
  const parent = join(run, "checkpoints");
  const folder = join(parent, nameOf(state.updates));
  const temporary = `${folder}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  await write(temporary);
  writeSmallFile(join(temporary, "state.json"), `${JSON.stringify(state)}\n`);
  rmSync(folder, { recursive: true, force: true });
  renameSync(temporary, folder);
  for (const old of wholeNames(parent).slice(0, -KEPT)) {
    rmSync(join(parent, old), { recursive: true });
  }
  return folder;
}

/** The newest complete checkpoint of a run, if there is one. */
export function latestCheckpoint(run: string): Checkpoint | undefined {
  const parent = join(run, "checkpoints");
  const name = existsSync(parent) ? wholeNames(parent).at(-1) : undefined;
  return name === undefined ? undefined : readCheckpoint(join(parent, name));
}

/** The checkpoint written after this many updates, if it still exists. */
export function checkpointAfter(run: string, updates: number): Checkpoint | undefined {
  const folder = join(run, "checkpoints", nameOf(updates));
  return existsSync(folder) ? readCheckpoint(folder) : undefined;
}

function readCheckpoint(folder: string): Checkpoint {
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
