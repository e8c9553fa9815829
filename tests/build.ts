/** Before any test: compiles the package, so that tests which start real processes start today's code. */
import { execFileSync } from "node:child_process";

/** Vitest calls this once. */
export function setup(): void {
  execFileSync("npm", ["run", "--silent", "build"], { stdio: "inherit" });
}
