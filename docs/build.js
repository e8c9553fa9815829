/**
 * Builds the documentation site into docs/.vitepress/dist: `npm run docs:build`.
 *
 * Installs the site's tools first (docs/package.json: they are not dependencies of the package), and
 * fails where the reference is out of date or a link leads nowhere.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const docs = dirname(fileURLToPath(import.meta.url));

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: "inherit" });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

// A copy of the lock file says what was installed last time.
const mark = join(docs, "node_modules", ".installed-lock.json");
const lock = readFileSync(join(docs, "package-lock.json"), "utf8");
if (!existsSync(mark) || readFileSync(mark, "utf8") !== lock) {
  run("npm", ["ci", "--no-progress"], docs);
  writeFileSync(mark, lock);
}
run("npm", ["run", "--silent", "build"], dirname(docs));
run("node", ["reference.js", "--check"], docs);
run("npm", ["run", "--silent", "build"], docs);
run("npx", ["tsc", "-p", "docs/browser"], dirname(docs));
run("node", ["browser/build.js", join(docs, ".vitepress", "dist", "try")], docs);
writeLlmsTxt();

/** `llms.txt` beside the site: the list of documents for language models (llmstxt.org). */
function writeLlmsTxt() {
  const site = join(docs, ".vitepress", "dist");
  if (!existsSync(site) || readdirSync(site).length === 0) throw new Error(`no site in ${site}`);
  const [, ...list] = readFileSync(join(docs, "README.md"), "utf8")
    .replaceAll(/^!\[.*\n/gm, "")
    .split("\n");
  const linked = list
    .join("\n")
    .replaceAll(
      /\]\((?![a-z]+:|\.\.)([^)]+)\.md([^)]*)\)/g,
      `](${process.env.PAWL_DOCS_BASE ?? "/"}$1.html$2)`,
    );
  writeFileSync(join(site, "llms.txt"), `# Pawl\n${linked}`);
}
