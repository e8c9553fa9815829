/** One run: its settings beside its recipe's, and the commands that resume and stop it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import type { Manifest } from "@pawl/core/runs/manifest.js";
import { findLock } from "@pawl/core/runs/run-lock.js";
import { shellQuoted } from "@pawl/core/shell-quoted.js";
import { TOKENIZER } from "@pawl/training/saved-model.js";
import { type Recipe, settingRows } from "../report/run-groups.js";
import type { RunDetail, RunRow } from "./api.js";

/** Commands whose runs can be resumed. */
const RESUMABLE: ReadonlyMap<string, string> = new Map([
  ["train", "train"],
  ["rwml", "rwml"],
  ["wm-train", "wm train"],
]);

/** A run in full. */
export function runDetail(
  folder: string,
  row: RunRow,
  manifest: Manifest,
  recipe: Recipe | undefined,
): RunDetail {
  return {
    row,
    folder,
    error: manifest.error ?? null,
    versions: manifest.versions,
    summary: manifest.summary ?? {},
    recipe: recipe?.name ?? null,
    settings: settingRows(manifest.config, recipe?.config),
    resumes: (manifest.resumes ?? []).map(({ at, update }) => ({ at, update })),
    commands: commandsOf(folder, row, manifest),
    hasTokenizer: existsSync(join(folder, TOKENIZER)),
    checkpoint: hasCheckpoint(folder),
  };
}

function hasCheckpoint(folder: string): boolean {
  try {
    return latestCheckpoint(folder) !== undefined;
  } catch {
    return false;
  }
}

function commandsOf(folder: string, { state, kind }: RunRow, { config }: Manifest) {
  // A folder's name must be neither an option nor a command of its own.
  const quoted = shellQuoted(folder.startsWith("-") ? `./${folder}` : folder);
  const commands: { what: string; command: string }[] = [];
  const pid = state === "running" ? findLock(folder).owner?.pid : undefined;
  if (pid !== undefined)
    commands.push({ what: "Stop (it can be resumed)", command: `kill -INT ${pid}` });
  const command = RESUMABLE.get(kind);
  if (command !== undefined && state === "done" && typeof config.updates === "number")
    commands.push({
      what: "Make it longer",
      command: `pawl ${command} --resume ${quoted} --updates ${2 * config.updates}`,
    });
  if (command !== undefined && state !== "done" && state !== "running")
    commands.push({ what: "Resume", command: `pawl ${command} --resume ${quoted}` });
  if (command !== undefined) {
    commands.push({ what: "Report", command: `pawl report ${quoted}` });
    if (kind === "train")
      commands.push({ what: "Evaluate", command: `pawl eval --checkpoint ${quoted}` });
  } else commands.push({ what: "Show", command: `pawl show ${quoted}` });
  return commands;
}
