/** Runs command lines for tests that try the shell. */
import { makeFolders } from "./file-system.js";
import { createSession, runCommand } from "./session.js";

/** What command lines show, one after the other; each must end with a code and a text that is not too long. */
export function runLines(...lines: readonly string[]): string {
  let session = createSession(0);
  makeFolders(session.machine.fs, "/app");
  session = { ...session, folder: "/app" };
  let all = "";
  for (const line of lines) {
    const { result, session: next } = runCommand(session, line);
    if (!Number.isInteger(result.code) || result.output.length > 2 ** 20)
      throw new Error(
        `${line.slice(0, 80)}: code ${result.code}, ${result.output.length} characters`,
      );
    session = next;
    all += result.output;
  }
  return all;
}
