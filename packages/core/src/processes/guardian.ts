/**
 * Ends the processes of this one if it cannot do so itself: after SIGKILL, say. One small process
 * waits for this one's end (its standard input closes) and then kills those that are still listed.
 */
import { type ChildProcess, spawn } from "node:child_process";

const SCRIPT = `
const listed = new Set();
let rest = "";
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const line of lines)
    if (line[0] === "+") listed.add(line.slice(1));
    else listed.delete(line.slice(1));
});
process.stdin.on("end", () => {
  for (const id of listed) try { process.kill(Number(id), "SIGKILL"); } catch {}
});
`;

let guardian: ChildProcess | undefined;

function tell(line: string): void {
  if (guardian === undefined || guardian.exitCode !== null) {
    guardian = spawn(process.execPath, ["-e", SCRIPT], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    guardian.on("error", () => undefined);
    guardian.stdin!.on("error", () => undefined);
    // It must not keep this process alive.
    guardian.unref();
    (guardian.stdin as unknown as { unref?(): void }).unref?.();
  }
  guardian.stdin!.write(`${line}\n`);
}

/** Has a process (or, by a negative number, a group of them) killed when this one ends. */
export const guard = (id: number): void => tell(`+${id}`);

/** Takes it off the list. */
export const unguard = (id: number): void => tell(`-${id}`);
