/** The page that trains in the browser, from the same sources, into a folder of static files. */
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const require = createRequire(import.meta.url);
const { rolldown } = await import("rolldown");

/** Node's modules, and what stands in for them. */
const STAND_INS = {
  files: ["fs", "fs/promises"],
  paths: ["path", "url"],
  bytes: ["crypto", "zlib", "util"],
  http: ["http"],
  rest: [
    ...["os", "child_process", "worker_threads", "async_hooks", "events", "vm", "module"],
    ...["stream/promises", "timers/promises"],
  ],
};
const standIns = new Map(
  Object.entries(STAND_INS).flatMap(([file, names]) =>
    names.map((name) => [`node:${name}`, join(here, "node", `${file}.ts`)]),
  ),
);
/** Modules of ours that are others in a page. */
const replaced = new Map(
  [
    ["packages/models/src/onnx-runtime.ts", "onnx-runtime.ts"],
    ["packages/core/src/processes/thread-calls.ts", "threads.ts"],
    ["ui/server.ts", "server.ts"],
  ].map(([ours, other]) => [join(root, ours), join(here, other)]),
);

const WASM = "ort-wasm-simd-threaded.wasm";

/** Builds the page into a folder. */
async function buildPage(out) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = { desk: "desk", trainer: "trainer", "replica-worker": "replica", start: "start" };
  for (const [name, file] of Object.entries(entries)) {
    const bundle = await rolldown({
      input: { [name]: join(here, `${file}.ts`) },
      platform: "browser",
      resolve: { extensionAlias: { ".js": [".ts", ".tsx", ".js"] } },
      transform: { target: "es2022", define: { VERSION: JSON.stringify(version) } },
      plugins: [
        {
          name: "page",
          async resolveId(id, importer) {
            const standIn = standIns.get(id);
            if (standIn !== undefined) return standIn;
            if (id.startsWith("node:"))
              throw new Error(`nothing stands in for ${id} (${importer})`);
            const found = await this.resolve(id, importer, { skipSelf: true });
            const other = found && replaced.get(found.id);
            return other === undefined || importer?.startsWith(here) ? found : other;
          },
        },
      ],
    });
    await bundle.write({
      dir: out,
      format: "esm",
      minify: true,
      codeSplitting: false,
      entryFileNames: "[name].js",
    });
    await bundle.close();
  }
  const wasm = join(dirname(require.resolve("onnxruntime-web/wasm")), WASM);
  copyFileSync(wasm, join(out, "onnx.wasm"));
  copyFileSync(join(root, "dist/ui/page.css"), join(out, "page.css"));
  copyFileSync(join(here, "index.html"), join(out, "index.html"));
  cpSync(join(here, "runs"), join(out, "runs"), { recursive: true });
  cpSync(join(root, "examples/try-start"), join(out, "runs/start"), { recursive: true });
  const runs = join(out, "runs");
  const files = readdirSync(runs, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(runs, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .sort();
  writeFileSync(join(runs, "files.json"), JSON.stringify(files));
}

await buildPage(process.argv[2]);
