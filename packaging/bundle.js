/**
 * Before `npm pack`: takes the install script off the copy of onnxruntime-node that the package
 * bundles. The script would download CUDA libraries on every machine that installs pawl; the CPU
 * binaries are already inside.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const path = join(import.meta.dirname, "../node_modules/onnxruntime-node/package.json");
const { scripts: _, devDependencies: __, ...manifest } = JSON.parse(readFileSync(path, "utf8"));
// Its other dependencies serve only the script.
const { "onnxruntime-common": common } = manifest.dependencies;
const bundled = { ...manifest, dependencies: { "onnxruntime-common": common } };
// Written beside and renamed: package managers share files between folders by hard links.
writeFileSync(`${path}.new`, `${JSON.stringify(bundled, undefined, 2)}\n`);
renameSync(`${path}.new`, path);
