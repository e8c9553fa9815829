/** What `npm install` does with this package; packaging/check.sh tries it. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const json = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const manifest = json("package.json");

it("runs no install scripts, of its own or of a dependency", () => {
  const lock = json("package-lock.json") as { packages: Record<string, object> };
  // npm runs the scripts that the lock file says exist: onnxruntime-node's would download CUDA libraries.
  const scripted = Object.entries(lock.packages).filter(([, one]) => "hasInstallScript" in one);
  expect(scripted.map(([path]) => path)).toEqual([]);
  for (const script of ["preinstall", "install", "postinstall", "prepare"])
    expect(manifest.scripts).not.toHaveProperty(script);
  // Users have no lock file: they get our copy, and packing takes the script off it.
  expect(manifest.bundleDependencies).toEqual(["onnxruntime-node"]);
  expect(manifest.scripts.prepack).toContain("packaging/bundle.js");
  // The site's tools are installed apart.
  expect(readFileSync("docs/.npmrc", "utf8")).toMatch(/^ignore-scripts=true$/m);
});

it("has no settings in .npmrc that npm does not know", () => {
  const known = ["save-exact", "omit-lockfile-registry-resolved", "engine-strict", "fund", "audit"];
  const lines = readFileSync(".npmrc", "utf8").split("\n");
  const names = lines.filter((line) => /^\w/.test(line)).map((line) => line.split("=")[0]);
  expect(names).toEqual(known);
});

it("ships documents, examples and the change log", () => {
  for (const part of ["docs/**/*.md", "examples/*.ts", "CHANGELOG.md"])
    expect(manifest.files).toContain(part);
  expect(manifest.keywords.length).toBeGreaterThan(5);
});
