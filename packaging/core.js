/**
 * Before `npm pack`: the room `core` as a package of its own in dist/core, for programs that bring their own engine. It
 * has no native parts.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const root = fileURLToPath(new URL("..", import.meta.url));
const compiled = join(root, "dist/packages/core/src");
const out = join(root, "dist/core");
rmSync(out, { recursive: true, force: true });

const bundle = await rolldown({
  input: { index: join(compiled, "index.js") },
  platform: "node",
  external: /^[^./]/,
});
await bundle.write({ dir: join(out, "lib"), format: "esm", chunkFileNames: "parts/[name].js" });
await bundle.close();

for (const name of readdirSync(compiled, { recursive: true, encoding: "utf8" })) {
  if (!name.endsWith(".d.ts") || name.includes("testing")) continue;
  const target = join(out, "types", relative(compiled, join(compiled, name)));
  mkdirSync(dirname(target), { recursive: true });
  cpSync(join(compiled, name), target);
}

const read = (path) => JSON.parse(readFileSync(join(root, path), "utf8"));
const { engines, keywords } = read("package.json");
const { private: _, exports: __, ...room } = read("packages/core/package.json");
const manifest = {
  ...room,
  keywords,
  engines,
  exports: {
    ".": { types: "./types/index.d.ts", default: "./lib/index.js" },
    "./package.json": "./package.json",
  },
};
writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
for (const file of ["LICENSE", "packages/core/README.md"])
  cpSync(join(root, file), join(out, file.split("/").at(-1)));
