/**
 * `npm run build`: names of rooms in what is compiled (`@pawl/core/text/prompt.js`) become relative paths, because rooms
 * are not published: in their place are the modules and types in dist/packages.
 */
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const compiled = fileURLToPath(new URL("../dist/packages", import.meta.url));

for (const entry of readdirSync(compiled, { recursive: true, withFileTypes: true })) {
  if (!/\.(js|d\.ts)$/.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  const text = readFileSync(path, "utf8");
  const changed = text.replaceAll(/(["'])@pawl\/([a-z-]+)\/([^"']+)\1/g, (_, quote, room, rest) => {
    const target = relative(dirname(path), join(compiled, room, "src", rest)).replaceAll("\\", "/");
    return `${quote}${target.startsWith(".") ? target : `./${target}`}${quote}`;
  });
  if (changed === text) continue;
  // The time stays, by which the next steps see what is new.
  const { atime, mtime } = statSync(path);
  writeFileSync(path, changed);
  utimesSync(path, atime, mtime);
}
