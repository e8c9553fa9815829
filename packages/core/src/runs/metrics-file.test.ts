import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { lostUpdates, missingFrom } from "./check-run.js";
import { cutMetrics, openMetricsWriter, readMetrics, sumOf } from "./metrics-file.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-metrics-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const path = join(parent, "metrics.jsonl");
const sums = join(parent, "metrics.crc32");
let problems: string[];
const note = (message: string) => void problems.push(message);
const updates = () => readMetrics(path, note).map(({ update }) => update);

beforeEach(() => {
  for (const file of [path, sums, `${path}.damaged`]) rmSync(file, { force: true });
  problems = [];
  const writer = openMetricsWriter(path);
  for (let update = 0; update < 6; update++) writer.append({ update, loss: 0.25 });
  writer.close();
});

/** Puts a text in the place of another, as a flipped bit does. */
function change(file: string, from: string, to: string): void {
  const text = readFileSync(file, "utf8");
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
}

/** The lines that are left when a run is resumed, and how many were moved aside. */
function resumed() {
  cutMetrics(path, () => true, note);
  const left = updates();
  const aside = existsSync(`${path}.damaged`)
    ? readFileSync(`${path}.damaged`, "utf8").split("\n").length - 1
    : 0;
  // What is left is sealed as before.
  problems = [];
  change(path, '"loss":0.25', '"loss":0.26');
  expect(updates()).toEqual(left);
  expect(problems).toEqual([`${path}:1: changed since it was written (checksum mismatch)`]);
  return { left, aside };
}

describe("damage to one line costs no other", () => {
  it("a changed number is found by whoever reads it", () => {
    change(path, '"update":2,"loss":0.25', '"update":2,"loss":0.35');
    expect(updates()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(problems).toEqual([`${path}:3: changed since it was written (checksum mismatch)`]);
    expect(resumed()).toEqual({ left: [0, 1, 3, 4, 5], aside: 1 });
  });

  it("two lines that became one", () => {
    change(path, '\n{"update":2', 'J{"update":2');
    expect(updates()).toEqual([0, 3, 4, 5]);
    expect(problems).toEqual([`${path}:2: not a JSON object; left out`]);
    expect(resumed()).toEqual({ left: [0, 3, 4, 5], aside: 1 });
  });

  it("one line that became two", () => {
    change(path, '"update":2,', '"update":2\n');
    expect(updates()).toEqual([0, 1, 3, 4, 5]);
    expect(problems).toHaveLength(2);
    expect(resumed()).toEqual({ left: [0, 1, 3, 4, 5], aside: 2 });
  });

  it("a line that is gone", () => {
    change(path, '{"update":2,"loss":0.25}\n', "");
    expect(updates()).toEqual([0, 1, 3, 4, 5]);
    expect(problems).toEqual([]);
  });

  it("the last lines", () => {
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.slice(0, text.indexOf('{"update":4')));
    expect(updates()).toEqual([0, 1, 2, 3]);
    expect(problems).toEqual([`${path}: its last lines are missing: 2 of 6`]);
  });

  it("the last lines, of which a resume says so unless it repeats them", () => {
    const text = readFileSync(path, "utf8");
    const cut = (): void => writeFileSync(path, text.slice(0, text.indexOf('{"update":4') + 5));
    cut();
    cutMetrics(path, ({ update }) => update! < 3, note);
    expect(problems).toEqual([]);
    cut();
    writeFileSync(
      sums,
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => `${sumOf(line)}\n`)
        .join(""),
    );
    cutMetrics(path, () => true, note);
    expect(problems).toEqual([`${path}: its last lines are missing: 2 of 6`]);
  });

  it("checksums that became one, or unreadable", () => {
    const [, , third] = readFileSync(sums, "utf8").split("\n");
    change(sums, `${third}\n`, `${third}J`);
    expect(updates()).toEqual([0, 1, 2, 3, 4, 5]);
    change(sums, `${third}J`, "J");
    expect(updates()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(problems).toEqual([]);
    expect(resumed()).toEqual({ left: [0, 1, 2, 3, 4, 5], aside: 0 });
  });

  it("a line whose checksum a killed process did not write", () => {
    writeFileSync(sums, readFileSync(sums, "utf8").split("\n").slice(0, 5).join("\n"));
    expect(updates()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(problems).toEqual([]);
  });
});

it("says so if the file is missing, and nothing if there never was one", () => {
  rmSync(path);
  expect(updates()).toEqual([]);
  expect(problems).toEqual([`${path} is missing: it had 6 lines`]);
  rmSync(sums);
  problems = [];
  expect(updates()).toEqual([]);
  expect(problems).toEqual([]);
});

it("missing updates are named as people count them", () => {
  expect(missingFrom([3, 5], 8)).toEqual(["0–2", "4", "6–7"]);
  expect(missingFrom([], 0)).toEqual([]);
  expect(lostUpdates("metrics", [-1, 0, 1, 2], 3)).toBeUndefined();
  expect(lostUpdates("metrics", [0, 2], 3)).toBe("the metrics of update 2 are missing");
  expect(lostUpdates("episodes", [], 3)).toBe("the episodes of updates 1–3 are missing");
});
