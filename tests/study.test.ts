/** The study's page and log have what its command makes of the recorded runs. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { FIGURE, forest, PAGE, pairsTable, readStudy, writtenPart } from "../bench/observations.js";
import * as regime from "../bench/regime.js";
import * as warmStarts from "../bench/warm-starts.js";

const study = readStudy();
const page = readFileSync(PAGE, "utf8");

it("docs/results/observations.md has the table of npm run bench -- observations --write", () => {
  expect(page).toContain(writtenPart(study));
  expect(readFileSync(FIGURE, "utf8")).toBe(forest(study));
  expect(page.split("\n").filter((line) => line.startsWith("|"))).toHaveLength(
    writtenPart(study)
      .split("\n")
      .filter((line) => line.startsWith("|")).length,
  );
  expect(page.split("\n").length).toBeLessThanOrEqual(120);
});

it("its answer has the pooled figures of that table", () => {
  const [, paw] = /both starts, GRPO.*PaW +\| (.*?) +\| (.*?) +\|/.exec(page) ?? [];
  expect(paw).toBe("−5.0 (−9.1 to −0.8)");
  const answer = page.replace(/\s+/g, " ");
  expect(answer).toContain("differ by −5.0 points of success");
  expect(answer).toContain("95 % interval −9.1 to −0.8");
});

it("docs/results/observations-log.md has the table of pairs", () => {
  expect(readFileSync("docs/results/observations-log.md", "utf8")).toContain(
    pairsTable(study).join("\n"),
  );
});

it("bench/observations.json holds no more solved tasks than there are, of three seeds", () => {
  for (const { splits } of study.comparisons)
    for (const [split, { solved = {} }] of Object.entries(splits))
      for (const counts of Object.values(solved)) {
        expect(counts).toHaveLength(3);
        for (const count of counts) expect(count ?? 0).toBeLessThanOrEqual(study.tasks[split]!);
      }
});

it("docs/results/paw.md counts its intervals of PaW's difference", () => {
  const paw = readFileSync("docs/results/paw.md", "utf8").replaceAll("−", "-");
  const intervals = paw
    .split("\n")
    .filter((line) => /^\| (grpo|gigpo|ppo|rloo)\+paw[ ,][^+]*\|/.test(line))
    .flatMap((line) => [...line.matchAll(/[+-][\d.]+ *\| (-?[\d.]+) to (-?[\d.]+)/g)])
    .map(([, low, high]) => [Number(low), Number(high)] as const);
  const withZero = intervals.filter(([low, high]) => low <= 0 && high >= 0);
  expect(paw).toContain(
    `Of the ${intervals.length} intervals of PaW's difference below, ${withZero.length} contain 0`,
  );
});

it("docs/results/warm-starts.md has the tables of its recorded runs, and the answer its figures", () => {
  const starts = readFileSync(warmStarts.PAGE, "utf8");
  for (const [name, results] of Object.entries(warmStarts.readResults()))
    expect(starts).toContain(warmStarts.writtenPart(name as warmStarts.WorldName, results));
  const after =
    /actions, learnt observations +\| valid_unseen .*\| (\S+) \(([^)]*)\) +\| [\d., ]+\|$/gm;
  const differences = [...starts.matchAll(after)];
  expect(differences).toHaveLength(2);
  for (const [, mean, interval] of differences)
    expect(starts.replace(/\s+/g, " ")).toContain(
      `on \`valid_unseen\` is ${mean} points for the start that learnt observations (95 % interval ${interval})`,
    );
});

it("docs/results/regime.md has the tables of its recorded runs", () => {
  const report = readFileSync(regime.PAGE, "utf8");
  const runs = regime.readStudy();
  expect(report).toContain(regime.writtenPart(runs));
  const updates = Object.values(runs.first).flatMap((run) => run.updates);
  const mixed = updates.reduce((sum, one) => sum + one.mixed, 0);
  expect(report.replace(/\s+/g, " ")).toContain(
    `only ${mixed} of the ${8 * updates.length} were mixed`,
  );
  const [, gain, interval] = /paw − plain, points.* (\S+) \((\S+ to \S+)\) +\| +\|/.exec(report)!;
  expect(report).toContain(`by ${gain} points (four pairs, 95 % interval ${interval})`);
  expect(report.split("\n").length).toBeLessThanOrEqual(121);
});
