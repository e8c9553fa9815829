/** Opens a file with the program that the desktop has for it. */
import { spawn } from "node:child_process";
import { resolve } from "node:path";

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Resolves to whether it could be opened; the program outlives us. */
export function openFile(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const [command, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  return new Promise((done) => {
    const child = spawn(command!, [...args, resolve(path)], {
      ...{ detached: true, stdio: "ignore" },
      env: { ...env },
    });
    child.once("error", () => done(false));
    child.once("spawn", () => {
      child.unref();
      done(true);
    });
  });
}
