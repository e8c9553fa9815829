/**
 * A folder of an episode's own, for servers that keep files. Agents know it as `/scratch`, in every
 * episode: its true name, which is never the same twice, is replaced in both directions.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { isRecord } from "@pawl/core/text/tool.js";
import { withoutGivenSecrets } from "@pawl/core/trust/secrets.js";
import type { TaskRecord } from "../tasks/task-record.js";

/** What agents call the folder. */
const SHOWN = "/scratch";

/** An episode's folder. */
export interface Scratch {
  readonly folder: string;
  /** What servers say, for the agent; without the keys that they were given. */
  hide(text: string): string;
  /** What the agent says, for servers. */
  reveal<T>(value: T): T;
  remove(): void;
}

/** Makes the folder, with the task's `files` in it: contents by path. */
export function makeScratch(task: TaskRecord): Scratch {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "pawl-scratch-")));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    writeFiles(folder, task);
  } catch (error) {
    remove();
    throw error;
  }
  const reveal = (value: unknown): unknown => {
    if (typeof value === "string") return value.replace(/^\/scratch(?=\/|$)/, folder);
    if (Array.isArray(value)) return value.map(reveal);
    if (!isRecord(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, reveal(one)]));
  };
  return {
    folder,
    hide: (text) => withoutGivenSecrets(text).replaceAll(folder, SHOWN),
    reveal: (value) => reveal(value) as typeof value,
    remove,
  };
}

function writeFiles(folder: string, { id, files = {} }: TaskRecord): void {
  if (!isRecord(files)) throw new EnvError(`task ${id}: "files": expected contents by path`);
  for (const [name, content] of Object.entries(files)) {
    const path = resolve(folder, name);
    if (typeof content !== "string" || relative(folder, path).startsWith("../../../../src/envs"))
      throw new EnvError(
        `task ${id}: "files": ${JSON.stringify(name)}: expected a path inside the episode's folder, and text`,
      );
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
}
