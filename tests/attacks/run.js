/**
 * `npm run attack [-- --write]`: tries to break every promise of SECURITY.md, and prints how many attacks each withstood.
 * With --write the table is written into docs/attacks.md, if nothing was skipped.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { startVitest } from "vitest/node";

const PAGE = "docs/attacks.md";
const BEGIN = "<!-- by npm run attack -- --write -->";
const END = "<!-- until here -->";

process.env.PAWL_DOSE = "whole";
const vitest = await startVitest("test", [], { mode: "attacks", watch: false });
/** Attacks by promise: the outermost `describe` of a test is the promise that it attacks. */
const promises = new Map();
for (const module of vitest.state.getTestModules())
  for (const suite of module.children.suites()) {
    const tests = [...suite.children.allTests()].map((test) => test.result().state);
    if (tests.length === 0) continue;
    const before = promises.get(suite.name) ?? [];
    promises.set(suite.name, [...before, ...tests]);
  }
await vitest.close();

const count = (tests, state) => tests.filter((one) => one === state).length;
const cells = [...promises]
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([promise, tests]) => [
    promise,
    `${tests.length}`,
    `${count(tests, "passed")}`,
    `${count(tests, "skipped")}`,
  ]);
const all = [...promises.values()].flat();
const total = ["all", `${all.length}`, `${count(all, "passed")}`, `${count(all, "skipped")}`];
const rows = [["promise", "attacks", "withstood", "skipped"], ...cells, total];
const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
const table = [line(rows[0]), rule, ...rows.slice(1).map(line)].join("\n");
process.stdout.write(`\n${table}\n`);

if (process.argv.includes("--write")) {
  if (count(all, "skipped") > 0 || count(all, "failed") > 0) {
    process.stderr.write(`${PAGE} is not written: some attacks were skipped or succeeded\n`);
    process.exitCode = 1;
  } else {
    const page = readFileSync(PAGE, "utf8");
    const [before, rest] = page.split(BEGIN);
    const after = rest.split(END)[1];
    const machine = `${cpus().length} × ${cpus()[0].model}`;
    const date = new Date().toISOString().slice(0, 10);
    const made = `Made by \`npm run attack -- --write\` (${date}, ${machine}, Node ${process.version}).`;
    writeFileSync(PAGE, `${before}${BEGIN}\n\n${made}\n\n${table}\n\n${END}${after}`);
  }
}
