/** Commands that record a long run to a folder and can go on with one that was interrupted. */
import { ConfigError } from "../config/config-error.js";
import { EngineError } from "../engine/engine.js";
import { hasManifest } from "../runs/manifest.js";
import { type Io, print, warn } from "./io.js";

/** The folder of a run: the one to go on in, the one that is asked for, or a new one. */
export function runFolderOf(
  { out, resume }: { readonly out?: string | undefined; readonly resume?: string | undefined },
  fresh: () => string,
): string {
  if (out !== undefined && resume !== undefined) {
    throw new ConfigError("--out: contradicts --resume, which goes on in the folder it names");
  }
  return resume ?? out ?? fresh();
}

/** Does the work under the eyes of its progress; whoever interrupts it is told how to go on. */
export async function recordRun(
  { command, folder, io, signal }: RecordedCommand,
  progress: { end(): void },
  work: (onProblem: (message: string) => void) => Promise<void>,
): Promise<void> {
  try {
    await work((message) => warn(io, message));
  } catch (error) {
    const goesOn = `pawl ${command} --resume ${folder} goes on`;
    if (signal.aborted) warn(io, `interrupted; ${goesOn}`);
    else if (error instanceof EngineError && hasManifest(folder))
      warn(io, `the engine failed; when it works again, ${goesOn} from the last checkpoint`);
    throw error;
  } finally {
    progress.end();
  }
  print(io, `recorded to ${folder}; pawl report ${folder} draws it`);
}

interface RecordedCommand {
  /** Its words after `pawl`. */
  readonly command: string;
  readonly folder: string;
  readonly io: Io;
  readonly signal: AbortSignal;
}
