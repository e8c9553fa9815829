/** `npm run build`: the front end as one script and one style sheet in dist/ui, with its licences. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isUpToDate } from "../packaging/up-to-date.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = fileURLToPath(new URL("../dist/ui/", import.meta.url));
const module = (path) => fileURLToPath(import.meta.resolve(path));

// Written last. What it imports from the package are types and plain functions.
const done = `${out}licences.txt`;
const src = fileURLToPath(new URL("../packages", import.meta.url));
const lock = fileURLToPath(new URL("../package-lock.json", import.meta.url));
if (isUpToDate(done, [here, src, lock])) process.exit(0);

const { rolldown } = await import("rolldown");
const bundle = await rolldown({
  input: `${here}main.tsx`,
  resolve: { extensionAlias: { ".js": [".ts", ".tsx", ".js"] } },
  transform: { target: "es2022" },
});
await bundle.write({ file: `${out}page.js`, format: "esm", minify: true });
await bundle.close();

mkdirSync(out, { recursive: true });
const chart = readFileSync(module("uplot/dist/uPlot.min.css"), "utf8");
writeFileSync(`${out}page.css`, `${chart}\n${readFileSync(`${here}style.css`, "utf8")}`);
const licences = ["preact", "uplot"].map((name) => {
  const folder = fileURLToPath(new URL(`../node_modules/${name}/`, import.meta.url));
  return `${name}\n\n${readFileSync(`${folder}LICENSE`, "utf8")}`;
});
writeFileSync(done, licences.join("\n\n"));
