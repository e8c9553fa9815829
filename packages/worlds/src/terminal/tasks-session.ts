/** Tasks on a machine in this process: its start, and what the hidden test says of its end. */
import { EnvError } from "@pawl/core/envs/env.js";
import { rewardOf } from "./container.js";
import * as files from "./shell/file-system.js";
import {
  bytesOfText,
  cloneSession,
  createSession,
  runCommand,
  type Session,
} from "./shell/session.js";
import { REWARD_FILE, type TerminalTask } from "./task.js";

/** A machine with the files of a task. */
export function startTask(task: TerminalTask, seed: number): Session {
  const session = createSession(seed);
  const { fs } = session.machine;
  files.makeFolders(fs, task.folder);
  for (const [path, text] of Object.entries(task.files)) {
    files.makeFolders(fs, path.slice(0, path.lastIndexOf("/")));
    files.writeFile(fs, path, bytesOfText(text));
  }
  return { ...session, folder: task.folder };
}

/** What a hidden test says. */
export interface Verdict {
  readonly success: boolean;
  /** From 0 to 1. */
  readonly reward: number;
}

const FOLDER = "/tests";
const JSON_FILE = "/logs/verifier/reward.json";
const LIMITS = { output: 2 ** 20, work: 10_000_000, seconds: 600 };

/** Runs the hidden test on a copy of the machine; one that is stopped is failed. */
export function scoreTask(task: TerminalTask, session: Session): Verdict {
  const copy = { ...cloneSession(session), folder: task.folder };
  const { fs } = copy.machine;
  runCommand(copy, `rm -rf ${FOLDER} /logs/verifier; mkdir -p ${FOLDER} /logs/verifier`);
  const failed = { success: false, reward: 0 };
  try {
    files.writeFile(fs, `${FOLDER}/test.sh`, bytesOfText(task.test));
  } catch {
    // The disk is full, or something lies where the test should.
    return failed;
  }
  const { result } = runCommand(copy, `cd ${task.folder}; bash ${FOLDER}/test.sh`, LIMITS);
  if (result.stopped !== undefined) return failed;
  const read = (path: string): string => files.lookUp(fs, path)?.content ?? "";
  try {
    const reward = Math.min(1, Math.max(0, rewardOf(read(JSON_FILE), read(REWARD_FILE), task.id)));
    return { success: reward === 1 && result.code === 0, reward };
  } catch (error) {
    if (error instanceof EnvError) return failed;
    throw error;
  }
}
