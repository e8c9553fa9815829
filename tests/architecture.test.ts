/** Imports point one way and without cycles: checks the table in docs/architecture.md. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, it } from "vitest";

/** What each folder of src may import, besides itself and the files of src itself. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  text: [],
  config: ["text"],
  embeddings: ["hub"],
  hub: [],
  search: ["embeddings"],
  envs: ["search", "text"],
  objectives: [],
  engine: ["objectives", "text"],
  models: ["engine", "hub", "text"],
  rollout: ["config", "engine", "envs", "text"],
  agents: ["config", "engine", "envs", "rollout", "text"],
  advantages: ["rollout"],
  alarms: ["config", "runs"],
  trackers: ["rollout", "runs"],
  update: ["advantages", "engine", "objectives", "rollout", "text"],
  runs: ["rollout"],
  imports: ["agents", "rollout", "search", "text"],
  plugins: ["advantages", "agents", "config", "envs", "objectives", "rollout", "runs", "text"],
  rwml: [
    ...[
      "advantages",
      "alarms",
      "config",
      "embeddings",
      "engine",
      "envs",
      "objectives",
      "rollout",
      "runs",
    ],
    ...["text", "train", "update"],
  ],
  train: [
    "advantages",
    "agents",
    "alarms",
    "config",
    "engine",
    "envs",
    "imports",
    "models",
    "objectives",
    "rollout",
    "runs",
    "text",
    "trackers",
    "update",
  ],
  evaluation: ["agents", "config", "envs", "exports", "rollout", "runs", "text", "train"],
  exports: ["agents", "config", "rollout", "runs", "text"],
  publish: ["config", "engine", "evaluation", "hub", "runs", "text", "train"],
  worldmodel: [
    "config",
    "engine",
    "envs",
    "objectives",
    "rollout",
    "runs",
    "text",
    "trackers",
    "train",
  ],
  report: ["engine", "objectives", "rollout", "runs", "rwml", "text"],
  ui: [
    ...["advantages", "engine", "envs", "report", "rollout", "runs", "text", "train", "update"],
    "worldmodel",
  ],
  bench: [
    "advantages",
    "config",
    "engine",
    "envs",
    "objectives",
    "report",
    "rollout",
    "runs",
    "rwml",
    "text",
    "train",
    "worldmodel",
  ],
  cli: [
    "agents",
    "bench",
    "config",
    "embeddings",
    "engine",
    "envs",
    "evaluation",
    "exports",
    "hub",
    "imports",
    "models",
    "plugins",
    "publish",
    "report",
    "rollout",
    "runs",
    "rwml",
    "search",
    "text",
    "trackers",
    "train",
    "ui",
    "worldmodel",
  ],
};

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => join("src", file));

/** The folder of src that a file is in; undefined for files directly in src and those outside. */
function folderOf(file: string): string | undefined {
  const parts = relative("src", file).split(/[\\/]/);
  return parts.length > 1 && parts[0] !== ".." ? parts[0] : undefined;
}

it("knows every folder of src", () => {
  const folders = new Set(files.flatMap((file) => folderOf(file) ?? []));
  expect([...folders].sort()).toEqual(Object.keys(mayImport).sort());
});

it("has no import in the wrong direction", () => {
  const wrong: string[] = [];
  for (const file of files) {
    const from = folderOf(file);
    // Tests may import anything.
    if (from === undefined || /\.test\.ts$|testing\.ts$/.test(file)) continue;
    for (const [, target] of readFileSync(file, "utf8").matchAll(
      /(?:from |import\()"(\.[^"]+)"/g,
    )) {
      const to = folderOf(join(dirname(file), target!));
      if (to !== undefined && to !== from && !mayImport[from]!.includes(to))
        wrong.push(`${file} -> ${target}`);
    }
  }
  expect(wrong).toEqual([]);
});

/** The cycles among files, one per line: every file in a cycle can be reached from every other. */
function circles(imports: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const reached = new Map<string, ReadonlySet<string>>();
  const reachedFrom = (start: string): ReadonlySet<string> => {
    const found = reached.get(start) ?? new Set<string>();
    const open = reached.has(start) ? [] : [start];
    for (let file = open.pop(); file !== undefined; file = open.pop())
      for (const next of imports.get(file) ?? []) {
        if (found.has(next)) continue;
        (found as Set<string>).add(next);
        open.push(next);
      }
    reached.set(start, found);
    return found;
  };
  const found = new Set<string>();
  for (const file of imports.keys()) {
    const around = [...reachedFrom(file)].filter((other) => reachedFrom(other).has(file));
    if (around.length > 0) found.add(around.sort().join(" <-> "));
  }
  return [...found];
}

it("finds exactly the cycles in a graph of imports", () => {
  const graph = new Map([
    ["a", ["b", "d"]],
    ["b", ["c"]],
    ["c", ["a"]],
    ["d", ["e"]],
    ["e", []],
    ["f", ["f"]],
  ]);
  expect(circles(graph)).toEqual(["a <-> b <-> c", "f"]);
});

it("has no import cycles, not even of types", () => {
  const imports = files.map((file): [string, string[]] => [
    file,
    [...readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)\.js"/g)].map(
      ([, target]) => `${join(dirname(file), target!)}.ts`,
    ),
  ]);
  expect(imports.flatMap(([, targets]) => targets).length).toBeGreaterThan(files.length);
  expect(circles(new Map(imports))).toEqual([]);
});

/** The files that these import, or what they import, including themselves. */
function reach(
  start: readonly string[],
  imported: (file: string) => readonly string[],
): Set<string> {
  const reached = new Set(start);
  for (const file of reached) for (const next of imported(file)) reached.add(next);
  return reached;
}

it("shows and checks records without loading the engine or the worlds", () => {
  // Types are gone when it runs, and what is imported inside a function waits until it is called.
  const imported = (file: string): readonly string[] =>
    [
      ...readFileSync(file, "utf8").matchAll(
        /^(?:import|export) (?!type )(?:[^;]*? from )?"(\.[^"]+)\.js";/gm,
      ),
    ].map(([, target]) => `${join(dirname(file), target!)}.ts`);
  const commands = ["dispatch", "show", "runs", "check"];
  const loaded = reach(
    commands.map((name) => join("src/cli", `${name}.ts`)),
    imported,
  );
  expect(loaded).toContain(join("src", "runs", "manifest.ts"));
  expect([...loaded].filter((file) => /registry|sessions|onnx/.test(file))).toEqual([]);
});

it("trains by a loop that knows no world, no agent and no engine, not even by type", () => {
  const imported = (file: string): readonly string[] =>
    [...readFileSync(file, "utf8").matchAll(/(?:from |import\(|^import )"(\.[^"]+)\.js"/gm)].map(
      ([, target]) => `${join(dirname(file), target!)}.ts`,
    );
  const reached = [...reach([join("src/train", "rl.ts")], imported)];
  expect(reached).toContain(join("src", "rollout", "rollout.ts"));
  expect(reached.length).toBeLessThanOrEqual(150);
  const worlds = readdirSync("src/envs", { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  );
  const unknown = [
    ...worlds.map(({ name }) => join("src/envs", name)),
    ...["search", "agents", "imports", "engine/embedded", "engine/remote", "worldmodel"].map(
      (folder) => join("src", folder),
    ),
  ];
  expect(
    reached.filter((file) => unknown.some((folder) => relative(folder, file)[0] !== ".")),
  ).toEqual([]);
});

it("has no import cycles in the Python server, not even inside functions", () => {
  const folder = "servers/torch/pawl_server";
  const modules = readdirSync(folder).filter((file) => file.endsWith(".py"));
  const imports = modules.map((file): [string, string[]] => [
    file,
    [...readFileSync(join(folder, file), "utf8").matchAll(/^\s*from \.(\w+) import /gm)].map(
      ([, target]) => `${target}.py`,
    ),
  ]);
  expect(imports.flatMap(([, targets]) => targets).length).toBeGreaterThan(modules.length);
  expect(circles(new Map(imports))).toEqual([]);
});

it("keeps files short enough to read in one sitting", () => {
  const long = files.filter((file) => readFileSync(file, "utf8").split("\n").length > 400);
  expect(long.filter((file) => !file.endsWith(".test.ts"))).toEqual([]);
});
