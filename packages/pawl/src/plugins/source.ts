/** A plugin's files on disk, and their hash. */
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";
import { readRegular, readRegularText } from "@pawl/core/files/regular-file.js";
import { MODULE_ENDINGS } from "@pawl/core/module-loader.js";

const IMPORT = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g;

/**
 * SHA-256 over a module and everything that it imports by relative paths. What comes from packages
 * is not part of it.
 */
export function hashPlugin(path: string): string {
  const hash = createHash("sha256");
  for (const file of filesOf(path)) {
    // The module itself may be renamed.
    if (file !== path) hash.update(`${relative(dirname(path), file)}\0`);
    hash.update(readRegular(file));
    hash.update("\0");
  }
  return hash.digest("hex");
}

function filesOf(entry: string): readonly string[] {
  const found = new Set([entry]);
  for (const file of found) {
    if (!MODULE_ENDINGS.includes(extname(file))) continue;
    for (const [, target] of readRegularText(file).matchAll(IMPORT)) {
      const there = resolveImport(join(dirname(file), target!));
      if (there !== undefined) found.add(there);
    }
  }
  const [first, ...others] = found;
  return [first!, ...others.sort()];
}

/** The file that an import means: as written, TypeScript for JavaScript, or without an ending. */
function resolveImport(path: string): string | undefined {
  const bare = path.replace(/\.m?js$/, "");
  const names = [
    path,
    ...["", "/index"].flatMap((part) => MODULE_ENDINGS.map((end) => `${bare}${part}${end}`)),
  ];
  return names.find((name) => existsSync(name) && statSync(name).isFile());
}
