/** The front end as `npm run build` made it: one script and one style sheet. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { packageFolder } from "@pawl/core/version.js";

/** The files of the front end. */
export const BUNDLE = { script: "page.js", style: "page.css" } as const;

/** Reads a file of the front end. */
export function readBundle(name: (typeof BUNDLE)[keyof typeof BUNDLE]): string {
  const path = join(packageFolder(), "dist", "ui", name);
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UserError(
      `${path} is missing: run npm run build in ${packageFolder()}, or install the package again`,
      { cause: error },
    );
  }
}
