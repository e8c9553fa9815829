/**
 * A page as one file that needs nothing but a browser: the front end of `pawl ui` with its data inside.
 * Its policy allows the script and the style sheet that are in it, and nothing else.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { packageFolder } from "@pawl/core/version.js";
import type { ReportView, ThresholdView } from "./views.js";

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

/** The whole file. */
export function staticPage(view: ReportView | ThresholdView): string {
  // Inside an element, only its own end tag has a meaning; our script and style have none.
  const [script, style] = [readBundle(BUNDLE.script), readBundle(BUNDLE.style)];
  const hash = (text: string): string =>
    `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Pawl</title><link rel="icon" href="data:,"><style>${style}</style></head>
<body><div id="page"><p class="waiting">Loading…</p></div>
<script type="application/json" id="data">${textOfData(view)}</script>
<script type="module">${script}</script>
<noscript>This page needs JavaScript; pawl runs and pawl show print the same in a terminal.</noscript></body></html>
`;
}

/** JSON in which nothing looks like markup; JSON has no NaN, so it becomes null. */
const textOfData = (view: unknown): string =>
  JSON.stringify(view).replace(/[<>&\u2028\u2029]/g, (character) => {
    const code = character.charCodeAt(0).toString(16).padStart(4, "0");
    return `\\u${code}`;
  });
