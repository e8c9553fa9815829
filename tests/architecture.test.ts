/** Imports point one way: the table of docs/architecture.md, kept by this test. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, it } from "vitest";

/** What each folder of src may import, besides itself and the files of src itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  text: [],
  config: ["text"],
  embeddings: [],
  search: ["embeddings"],
  envs: ["search", "text"],
  objectives: [],
  engine: ["objectives", "text"],
  rollout: ["config", "engine", "envs", "text"],
  advantages: ["rollout"],
  update: ["advantages", "engine", "objectives", "rollout", "text"],
  runs: ["rollout"],
  rwml: ["embeddings", "engine", "envs", "rollout", "runs", "text", "update"],
  train: [
    "advantages",
    "config",
    "engine",
    "envs",
    "objectives",
    "rollout",
    "runs",
    "rwml",
    "text",
    "update",
  ],
  worldmodel: ["config", "engine", "envs", "objectives", "rollout", "runs", "text", "train"],
  report: ["engine", "objectives", "rollout", "runs", "rwml", "text"],
  bench: [
    "advantages",
    "config",
    "engine",
    "envs",
    "objectives",
    "report",
    "rollout",
    "runs",
    "text",
    "train",
  ],
  cli: [
    "bench",
    "config",
    "embeddings",
    "engine",
    "envs",
    "report",
    "rollout",
    "runs",
    "rwml",
    "search",
    "text",
    "train",
    "worldmodel",
  ],
};

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => join("src", file));

/** The folder of src that a file is in; undefined for the files of src itself and those outside. */
function folderOf(file: string): string | undefined {
  const parts = relative("src", file).split(/[\\/]/);
  return parts.length > 1 && parts[0] !== ".." ? parts[0] : undefined;
}

it("knows every folder of src", () => {
  const folders = new Set(files.flatMap((file) => folderOf(file) ?? []));
  expect([...folders].sort()).toEqual(Object.keys(mayImport).sort());
});

it("has no import against the direction", () => {
  const wrong: string[] = [];
  for (const file of files) {
    const from = folderOf(file);
    // Tests look wherever they need to.
    if (from === undefined || /\.test\.ts$|testing\.ts$/.test(file)) continue;
    for (const [, target] of readFileSync(file, "utf8").matchAll(/from "(\.[^"]+)"/g)) {
      const to = folderOf(join(dirname(file), target!));
      if (to !== undefined && to !== from && !mayImport[from]!.includes(to))
        wrong.push(`${file} -> ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

it("keeps files short enough to read in one sitting", () => {
  const long = files.filter((file) => readFileSync(file, "utf8").split("\n").length > 400);
  expect(long.filter((file) => !file.endsWith(".test.ts"))).toEqual([]);
});
