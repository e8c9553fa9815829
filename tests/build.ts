/**
 * Before any test: compiles the package, so that tests that start real processes run the current
 * code.
 */
import { execFileSync } from "node:child_process";

/** Vitest calls this once. */
export function setup(): void {
  execFileSync("npm", ["run", "--silent", "build"], { stdio: "inherit" });
}
