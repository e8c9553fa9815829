/** Tasks as folders of Harbor (schema 1.4, Harbor 0.25.0), for other programs that train or evaluate. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stringify } from "smol-toml";
import type { TerminalTask } from "./task.js";

/** Has bash and the tools that the tasks are made for. */
const IMAGE = "debian:12-slim";
const SECONDS = { agent: 600, verifier: 60 };

/** A file of a task folder. */
interface WrittenFile {
  readonly text: string;
  readonly mode?: number;
}

/** What a task's folder holds, by path. */
export function harborFiles(task: TerminalTask): ReadonlyMap<string, WrittenFile> {
  const { id, family, difficulty, instruction, files, folder, test, solution } = task;
  const name = `pawl/${id.replaceAll("/", "-")}`;
  const config = {
    schema_version: "1.4",
    task: { name, description: instruction, keywords: ["terminal", family] },
    metadata: { family, difficulty },
    agent: { timeout_sec: SECONDS.agent },
    verifier: { timeout_sec: SECONDS.verifier },
    environment: { network_mode: "no-network", workdir: folder },
  };
  return new Map<string, WrittenFile>([
    ["instruction.md", { text: `${instruction}\n` }],
    ["task.toml", { text: stringify(config) }],
    [
      "environment/Dockerfile",
      { text: `FROM ${IMAGE}\nWORKDIR ${folder}\nCOPY files${folder}/ ${folder}/\n` },
    ],
    ...Object.entries(files).map(([path, text]) => [`environment/files${path}`, { text }] as const),
    ["tests/test.sh", { text: test, mode: 0o755 }],
    ["solution/solve.sh", { text: `#!/bin/bash\n${solution.join("\n")}\n`, mode: 0o755 }],
  ]);
}

/** Writes a task's folder, named by its id. */
export async function writeHarborTask(folder: string, task: TerminalTask): Promise<void> {
  for (const [path, { text, mode = 0o644 }] of harborFiles(task)) {
    const file = join(folder, task.id, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { mode });
  }
}
