/**
 * `npm run build`: joins the compiled modules of dist/src into dist/lib, which is what users run. Node takes longer to
 * find and open 500 small files than to run them, in every process and in every thread of an engine.
 *
 * An entry is a file that is started or imported by name; what several of them need, or what is loaded only when
 * needed, is in dist/lib/parts. Packages stay outside, but for those of which we use a fraction.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { isUpToDate } from "./up-to-date.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const compiled = join(root, "dist/src");
const out = join(root, "dist/lib");

const entries = {
  main: "cli/main.js",
  index: "index.js",
  // Started by `builtFile`.
  worker: "engine/embedded/worker.js",
  "replica-worker": "engine/embedded/replica-worker.js",
  "world-worker": "cli/world-worker.js",
};

/** Packages that are joined with ours, because we use a fraction of them. */
const joined = ["zod", "@modelcontextprotocol/client", "@huggingface/hub"];
/** And what these need. */
const within = (id) => id.includes("node_modules");

const done = join(out, "main.js");
// The lock file changes with zod and rolldown.
const inputs = [compiled, join(root, "dist/recipes"), join(root, "package-lock.json")];
if (isUpToDate(done, [...inputs, fileURLToPath(import.meta.url)])) process.exit(0);
const began = new Date();

const { rolldown } = await import("rolldown");
const bundle = await rolldown({
  input: Object.fromEntries(
    Object.entries(entries).map(([name, path]) => [name, join(compiled, path)]),
  ),
  platform: "node",
  external: (id, importer) =>
    id.startsWith("node:") ||
    (/^[^./]/.test(id) && !joined.includes(id) && !(importer !== undefined && within(importer))),
  plugins: [
    {
      // With its map, so that ours leads to the sources.
      name: "compiled",
      load: (id) =>
        id.startsWith(compiled) || id.startsWith(join(root, "dist/recipes"))
          ? { code: readFileSync(id, "utf8"), map: JSON.parse(readFileSync(`${id}.map`, "utf8")) }
          : undefined,
    },
  ],
});
const { output } = await bundle.generate({
  dir: out,
  format: "esm",
  sourcemap: true,
  entryFileNames: "[name].js",
  chunkFileNames: "parts/[name].js",
});
await bundle.close();

/** The names of the packages that were joined. */
const packages = new Set(
  output
    .flatMap((file) => (file.type === "chunk" ? file.moduleIds : []))
    .map((id) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id.replaceAll("\\", "/"))?.[1])
    .filter((name) => name !== undefined),
);
const licences = [...packages].sort().map((name) => {
  const folder = join(root, "node_modules", name);
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const { license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name}\n\n${file === undefined ? license : readFileSync(join(folder, file), "utf8")}`;
});
const files = new Map([
  ...output.map((file) => [file.fileName, file.type === "chunk" ? file.code : String(file.source)]),
  ["licences.txt", licences.join("\n\n")],
]);
// A file that is the same is left alone: tests may be running it.
for (const [name, text] of files) {
  const path = join(out, name);
  if (existsSync(path) && readFileSync(path, "utf8") === text) continue;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
for (const entry of readdirSync(out, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (entry.isFile() && !files.has(relative(out, path).replaceAll("\\", "/"))) rmSync(path);
}
chmodSync(done, 0o755);
// What is compiled while this runs is joined the next time.
utimesSync(done, began, began);
