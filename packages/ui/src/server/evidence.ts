/** Results that `pawl wm eval …` and `pawl eval` wrote to JSON files below the folder. */
import { type Dirent, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { EvidenceFile } from "./api.js";
import { pathInside } from "./safe-path.js";

const DEEPEST = 4;
const MOST_FILES = 2_000;
/** A larger file is not a result of ours. */
const MOST_BYTES = 2 ** 26;
/** Parts of runs that are many, and never results. */
const SKIPPED = /^\.|^node_modules$|^checkpoints$|^reference$|^tokenizer$|^tensorboard$/;
const NOT_RESULTS = /^(manifest|package|package-lock|tsconfig|config|tokenizer|state)\.json$/;

/** The results below a folder, newest first. */
export function findEvidence(root: string): readonly EvidenceFile[] {
  const found: EvidenceFile[] = [];
  let looked = 0;
  const visit = (path: string, depth: number): void => {
    for (const entry of entriesOf(join(root, path))) {
      const below = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) {
        if (depth < DEEPEST && !SKIPPED.test(entry.name)) visit(below, depth + 1);
      } else if (entry.isFile() && entry.name.endsWith(".json") && !NOT_RESULTS.test(entry.name)) {
        if (++looked > MOST_FILES) return;
        const read = readEvidence(root, below);
        if (read !== undefined) found.push(read);
      }
    }
  };
  visit("", 0);
  return found.sort((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? 1 : -1));
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function readEvidence(root: string, path: string): EvidenceFile | undefined {
  try {
    const file = pathInside(root, path);
    if (statSync(file).size > MOST_BYTES) return undefined;
    const content: unknown = JSON.parse(readRegularText(file));
    if (typeof content !== "object" || content === null || Array.isArray(content)) return undefined;
    const fields = content as Readonly<Record<string, unknown>>;
    const kind = kindOf(fields);
    if (kind === undefined) return undefined;
    const { createdAt } = fields;
    return {
      path,
      kind,
      createdAt: typeof createdAt === "string" ? createdAt : null,
      content: fields,
    };
  } catch {
    // Removed since, or not JSON.
    return undefined;
  }
}

function kindOf(content: Readonly<Record<string, unknown>>): EvidenceFile["kind"] | undefined {
  if (isTable(content.all) && isTable(content.byDepth)) return "fidelity";
  if (Array.isArray(content.policies) && isTable(content.cases)) return "consistency";
  if (content.kind === "pawl-evaluation" && isTable(content.results)) return "card";
  return undefined;
}

const isTable = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);
