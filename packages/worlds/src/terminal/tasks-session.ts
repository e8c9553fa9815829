/** Tasks on a machine in this process: its start, and what the hidden test says of its end. */
import { EnvError } from "@pawl/core/envs/env.js";
import { rewardOf } from "./container.js";
import * as files from "./shell/file-system.js";
import { FileError, type FileSystem } from "./shell/inodes.js";
import {
  bytesOfText,
  cloneSession,
  createSession,
  runCommand,
  type Session,
} from "./shell/session.js";
import { quoted, REWARD_FILE, type TerminalTask, type Texts } from "./task.js";

/** A machine with the files of a task. */
export function startTask(task: TerminalTask, seed: number): Session {
  const { files: texts, folder, modes = {}, prepare = [] } = task;
  let session = createSession(seed);
  const { fs } = session.machine;
  files.makeFolders(fs, folder);
  put(fs, texts);
  for (const [path, mode] of Object.entries(modes)) files.changeMode(fs, path, mode);
  for (const command of prepare) {
    const done = runCommand(session, command, LIMITS, true);
    const { code, output, stopped } = done.result;
    if (code !== 0)
      throw new EnvError(
        `terminal: task ${task.id}: ${JSON.stringify(command.slice(0, 80))} failed while its machine was made ready: ${stopped ?? output.trim().slice(-300)}`,
      );
    session = done.session;
  }
  return { ...session, folder };
}

function put(fs: FileSystem, texts: Texts): void {
  for (const [path, text] of Object.entries(texts)) {
    files.makeFolders(fs, path.slice(0, path.lastIndexOf("/")));
    files.writeFile(fs, path, bytesOfText(text));
  }
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
    const beside = Object.entries(task.testFiles ?? {}).map(
      ([path, text]) => [`${FOLDER}/${path}`, text] as const,
    );
    put(fs, { ...Object.fromEntries(beside), [`${FOLDER}/test.sh`]: task.test });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    // The disk is full, or something lies where the test should.
    return failed;
  }
  const told = Object.entries(task.testVariables ?? {});
  const variables = told.map(([name, value]) => `${name}=${quoted(value)} `).join("");
  const { result } = runCommand(
    copy,
    `cd ${quoted(task.folder)}; ${variables}bash ${FOLDER}/test.sh`,
    LIMITS,
  );
  if (result.stopped !== undefined) return failed;
  const read = (path: string): string => files.lookUp(fs, path)?.content ?? "";
  try {
    const reward = Math.min(1, Math.max(0, rewardOf(read(JSON_FILE), read(REWARD_FILE), task.id)));
    return { success: reward === 1, reward };
  } catch (error) {
    if (error instanceof EnvError) return failed;
    throw error;
  }
}
