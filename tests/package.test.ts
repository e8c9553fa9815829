/** What `npm install` does with this package; packaging/check.sh tries it. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
  // Users have no lock file, and get the platforms' packages of packaging/pack.js instead.
  expect(manifest.dependencies).not.toHaveProperty("onnxruntime-node");
  expect(manifest.devDependencies["onnxruntime-node"]).toBe(
    manifest.dependencies["onnxruntime-common"],
  );
  // The site's tools are installed apart.
  expect(readFileSync("docs/.npmrc", "utf8")).toMatch(/^ignore-scripts=true$/m);
});

it("says in a clone that is not installed what is missing, and leaves it as it was", () => {
  const clone = mkdtempSync(join(tmpdir(), "pawl-clone-"));
  cpSync("bin", join(clone, "bin"), { recursive: true });
  cpSync("package.json", join(clone, "package.json"));
  const direct = spawnSync(join(clone, manifest.bin.pawl), { encoding: "utf8" });
  expect(direct.stderr).toBe("pawl: this clone is not installed yet: run npm ci first\n");
  expect(direct.status).toBe(1);
  expect(readdirSync(clone).sort()).toEqual(["bin", "package.json"]);
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
