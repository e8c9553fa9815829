import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { openRecordWriter, type RecordProblem, readRecords } from "./record-file.js";

/** Mounting a 64 kB disk takes root; otherwise the test of a full disk is skipped. */
const canMount = process.platform === "linux" && process.getuid?.() === 0;

let path: string;
let problems: RecordProblem[];
const note = (problem: RecordProblem) => void problems.push(problem);
const read = () => [...readRecords(path, note)];

function write(...batches: readonly (readonly unknown[])[]): void {
  const writer = openRecordWriter(path, note);
  for (const batch of batches) writer.append(batch);
  writer.close();
}

beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), "pawl-records-")), "episodes.jsonl.gz");
  problems = [];
});

describe("record file", () => {
  it("returns what was appended, over several openings, and is plain gzip for other tools", () => {
    write([{ n: 1 }, { n: 2 }]);
    write([], [{ n: 3, text: "zwölf\n🙂" }]);
    expect(read()).toEqual([{ n: 1 }, { n: 2 }, { n: 3, text: "zwölf\n🙂" }]);
    expect(gunzipSync(readFileSync(path)).toString().trim().split("\n")).toHaveLength(3);
    expect(problems).toEqual([]);
  });

  it("drops an incomplete last append wherever it was cut, keeps the rest, and can continue", () => {
    write([{ n: 1 }], [{ n: 2, filler: "x".repeat(100) }]);
    const whole = readFileSync(path);
    const firstEnd = whole.readUInt32LE(16);
    fc.assert(
      fc.property(fc.integer({ min: firstEnd + 1, max: whole.length - 1 }), (cut) => {
        writeFileSync(path, whole);
        truncateSync(path, cut);
        problems = [];
        expect(read()).toEqual([{ n: 1 }]);
        expect(problems.map((problem) => problem.kind)).toEqual(["torn"]);
        write([{ n: 3 }]);
        problems = [];
        expect(read()).toEqual([{ n: 1 }, { n: 3 }]);
        expect(problems).toEqual([]);
      }),
    );
  });

  it("reports a damaged record and reads those around it", () => {
    write([{ n: 1 }], [{ n: 2 }], [{ n: 3 }]);
    const bytes = readFileSync(path);
    const second = bytes.readUInt32LE(16);
    bytes[second + 22]! ^= 0xff;
    writeFileSync(path, bytes);
    expect(read()).toEqual([{ n: 1 }, { n: 3 }]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatchObject({ kind: "damaged", offset: second });
  });

  it("rejects a file that is not a record file, and does not touch it", () => {
    writeFileSync(path, "this is a letter to my aunt, not a record file");
    expect(read).toThrow(/expected a record of this project at byte 0/);
    expect(() => openRecordWriter(path, note)).toThrow(/expected a record/);
    expect(statSync(path).size).toBeGreaterThan(40);
  });

  it("names a missing file", () => {
    path = join(path, "missing");
    expect(read).toThrow(/could not read .*missing: it does not exist/);
  });

  it.skipIf(!canMount)("survives a full disk: reports it, keeps what was there, continues", () => {
    const disk = mkdtempSync(join(tmpdir(), "pawl-disk-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]);
    try {
      path = join(disk, "episodes.jsonl.gz");
      const writer = openRecordWriter(path, note);
      writer.append([{ n: 1 }]);
      const noise = randomBytes(100_000).toString("base64");
      expect(() => writer.append([{ noise }])).toThrow(/disk is full.*recorded before is safe/);
      writer.append([{ n: 2 }]);
      writer.close();
      expect(read()).toEqual([{ n: 1 }, { n: 2 }]);
      expect(problems).toEqual([]);
    } finally {
      execFileSync("umount", [disk]);
    }
  });
});
