/**
 * `npm run build`: joins the compiled modules of dist/src into dist/lib, which is what users run. Node takes longer to
 * find and open 500 small files than to run them, in every process and in every thread of an engine.
 *
 * An entry is a file that is started or imported by name; what several of them need, or what is loaded only when
 * needed, is in dist/lib/parts. Packages stay outside, but for zod, of which we use a fraction.
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
  external: (id) => /^[^./]/.test(id) && id !== "zod",
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

const licence = readFileSync(join(root, "node_modules/zod/LICENSE"), "utf8");
const files = new Map([
  ...output.map((file) => [file.fileName, file.type === "chunk" ? file.code : String(file.source)]),
  ["licences.txt", `zod\n\n${licence}`],
]);
for (const [name, text] of files) checkTelemetry(name, text);
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

/** ONNX Runtime reads when it is loaded whether it may send telemetry, so that must be said before. */
function checkTelemetry(name, text) {
  const first = (pattern) => text.search(pattern);
  const runtime = first(/^import .*"onnxruntime-node";$/m);
  if (!name.endsWith(".js") || runtime === -1) return;
  const off = first(/^import ".*\/no-telemetry\.js";$/m);
  if (off === -1 || off > runtime)
    throw new Error(
      `dist/lib/${name}: expected the import of no-telemetry.js before that of onnxruntime-node; see src/no-telemetry.ts`,
    );
}
