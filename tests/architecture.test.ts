/** Imports point one way and without cycles: checks the tables in docs/architecture.md. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, it } from "vitest";

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

const rooms = readdirSync("packages");
const manifests = new Map(
  rooms.map((room): [string, Manifest] => [
    room,
    JSON.parse(readFileSync(`packages/${room}/package.json`, "utf8")),
  ]),
);

/** What each folder of core may import, besides itself and `base`: the rest of core. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  text: [],
  config: ["text"],
  constraint: ["text"],
  objectives: [],
  envs: ["text"],
  engine: ["constraint", "objectives", "text"],
  rollout: ["config", "engine", "envs", "text"],
  runs: ["rollout"],
  alarms: ["config", "runs"],
  advantages: ["rollout"],
  update: ["advantages", "engine", "objectives", "rollout", "text"],
  train: [
    ...["advantages", "alarms", "config", "engine", "envs", "objectives", "rollout", "runs"],
    ...["text", "update"],
  ],
};
const base = [".", "files", "http", "processes", "trust"];

const sources = rooms.flatMap((room) =>
  readdirSync(`packages/${room}/src`, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join("packages", room, "src", file).replaceAll("\\", "/")),
);
const isForTests = (file: string): boolean =>
  /\.test\.ts$|testing\.ts$|\/fixtures\/|\/scratch\.ts$/.test(file);
const product = sources.filter((file) => !isForTests(file));

const roomOf = (file: string): string => file.split("/")[1]!;

/** The file that a specifier means, or undefined if it is outside the rooms. */
function targetOf(file: string, specifier: string): string | undefined {
  const own = /^@pawl\/([^/]+)\/(.+)\.js$/.exec(specifier);
  if (own !== null) return `packages/${own[1]}/src/${own[2]}.ts`;
  if (!specifier.startsWith(".")) return undefined;
  return `${join(dirname(file), specifier).replaceAll("\\", "/").replace(/\.js$/, "")}.ts`;
}

const specifiersOf = (
  file: string,
  pattern = /(?:from |import\()\s*"([^"]+)"|^import "([^"]+)"/gm,
) => [...readFileSync(file, "utf8").matchAll(pattern)].map(([, from, alone]) => (from ?? alone)!);

/** What a file imports; types too, and what is loaded later. */
const importsOf = (file: string): readonly string[] =>
  specifiersOf(file).flatMap((specifier) => targetOf(file, specifier) ?? []);

/** What a file loads at once: neither types nor what is imported inside a function. */
const loadsOf = (file: string): readonly string[] =>
  specifiersOf(file, /^(?:import|export) (?!type )(?:[^;]*? from )?"([^"]+)";/gm).flatMap(
    (specifier) => targetOf(file, specifier) ?? [],
  );

/** All that can be reached from files over such imports. */
function reachedFrom(
  start: readonly string[],
  next: (file: string) => readonly string[],
): ReadonlySet<string> {
  const reached = new Set(start);
  const open = [...start];
  for (let file = open.pop(); file !== undefined; file = open.pop())
    for (const target of next(file))
      if (!reached.has(target)) {
        reached.add(target);
        open.push(target);
      }
  return reached;
}

it("imports files that exist", () => {
  const wrong = product.flatMap((file) =>
    importsOf(file)
      .filter((target) => !existsSync(target))
      .map((target) => `${file} -> ${target}`),
  );
  expect(wrong).toEqual([]);
  expect(product.flatMap(importsOf).length).toBeGreaterThan(product.length);
});

it("declares in each room what it imports, and nothing else", () => {
  for (const [room, { dependencies = {} }] of manifests) {
    const imported = product
      .filter((file) => roomOf(file) === room)
      .flatMap((file) => specifiersOf(file))
      .flatMap((specifier) => /^(?:@[^/]+\/)?[a-z0-9][^/:]*(?=\/|$)/.exec(specifier)?.[0] ?? [])
      // Examples in texts import the library by its name.
      .filter((name) => name !== `@pawl/${room}` && name !== "pawl");
    expect([...new Set(imported)].sort(), room).toEqual(Object.keys(dependencies).sort());
  }
});

it("has the versions of its root in every room", () => {
  const root = JSON.parse(readFileSync("package.json", "utf8"));
  const versions: Record<string, string> = {
    ...root.dependencies,
    // Joined with ours when the program is built.
    ...root.devDependencies,
    ...Object.fromEntries(rooms.map((room) => [`@pawl/${room}`, root.version])),
  };
  for (const [room, { dependencies = {}, ...manifest }] of manifests) {
    expect(manifest, room).toMatchObject({ version: root.version, private: true });
    for (const [name, version] of Object.entries(dependencies))
      expect(version, `${name} in ${room}`).toBe(versions[name]);
  }
});

it("has no circles among rooms", () => {
  const between = new Map(
    [...manifests].map(([room, { dependencies = {} }]): [string, readonly string[]] => [
      room,
      Object.keys(dependencies).flatMap((name) => /^@pawl\/(.+)/.exec(name)?.[1] ?? []),
    ]),
  );
  expect(circles(between)).toEqual([]);
  expect(between.get("core")).toEqual([]);
});

it("describes every room, in its own page and in the table of the architecture", () => {
  const page = readFileSync("docs/architecture.md", "utf8");
  for (const room of rooms) {
    expect(existsSync(`packages/${room}/README.md`), room).toBe(true);
    expect(page).toContain(`(../packages/${room}/README.md)`);
  }
});

it("has no import in the wrong direction inside core", () => {
  const folderOf = (file: string): string => {
    const parts = relative("packages/core/src", file).split(/[\\/]/);
    return parts.length > 1 ? parts[0]! : ".";
  };
  const files = product.filter(
    (file) => roomOf(file) === "core" && file !== "packages/core/src/index.ts",
  );
  expect([...new Set(files.map(folderOf))].sort()).toEqual(
    [...base, ...Object.keys(mayImport)].sort(),
  );
  const wrong = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => {
        const [from, to] = [folderOf(file), folderOf(target)];
        return to !== from && !base.includes(to) && !(mayImport[from] ?? []).includes(to);
      })
      .map((target) => `${file} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

/** The cycles in a graph, one per line: every node in a cycle can be reached from every other. */
function circles(imports: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const next = (node: string): readonly string[] => imports.get(node) ?? [];
  const after = new Map(
    [...imports.keys()].map((node) => [node, reachedFrom([...next(node)], next)]),
  );
  const around = [...imports.keys()].map((node) =>
    [...after.get(node)!].filter((other) => after.get(other)?.has(node)).sort(),
  );
  return [...new Set(around.filter((one) => one.length > 0).map((one) => one.join(" <-> ")))];
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

it("has no import cycles among files, not even of types", () => {
  expect(circles(new Map(sources.map((file) => [file, importsOf(file)])))).toEqual([]);
});

it("reaches no world, no agent and no engine from the loop, not even by a type", () => {
  const reached = reachedFrom(["packages/core/src/train/rl.ts"], importsOf);
  expect([...reached].filter((file) => roomOf(file) !== "core")).toEqual([]);
  expect([...reached].filter((file) => /\/envs\/(household|desk)\//.test(file))).toEqual([]);
  expect(reached.size).toBeGreaterThan(50);
  expect(reached.size).toBeLessThanOrEqual(140);
});

it("shows and checks records without loading the engine or the worlds", () => {
  const commands = ["dispatch", "show", "runs", "check"];
  const loaded = reachedFrom(
    commands.map((name) => `packages/pawl/src/cli/${name}.ts`),
    loadsOf,
  );
  expect(loaded).toContain("packages/core/src/runs/manifest.ts");
  expect([...loaded].filter((file) => /registry|sessions|onnx/.test(file))).toEqual([]);
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
  const long = product.filter((file) => readFileSync(file, "utf8").split("\n").length > 400);
  expect(long).toEqual([]);
});
