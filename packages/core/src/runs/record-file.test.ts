import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

  it("loses no record when one bit of a length is flipped, whichever it is", () => {
    write([{ n: 1 }], [{ n: 2, filler: "y".repeat(300) }], [{ n: 3 }]);
    const whole = readFileSync(path);
    const second = whole.readUInt32LE(16);
    for (const start of [0, second, second + whole.readUInt32LE(second + 16)])
      for (let bit = 0; bit < 32; bit++) {
        const bytes = Buffer.from(whole);
        bytes[start + 16 + (bit >> 3)]! ^= 1 << (bit & 7);
        writeFileSync(path, bytes);
        problems = [];
        expect(read()).toMatchObject([{ n: 1 }, { n: 2 }, { n: 3 }]);
        expect(problems).toMatchObject([{ kind: "mended", offset: start }]);
        // The next writer puts it right.
        write([{ n: 4 }]);
        problems = [];
        expect(read()).toMatchObject([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }]);
        expect(problems).toEqual([]);
        expect(gunzipSync(readFileSync(path)).toString().split("\n")).toHaveLength(5);
      }
  });

  it("loses one append at most to one flipped bit anywhere, and moves it into a file", () => {
    write([{ n: 1 }], [{ n: 2 }], [{ n: 3 }]);
    const whole = readFileSync(path);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 8 * whole.length - 1 }), (bit) => {
        const bytes = Buffer.from(whole);
        bytes[bit >> 3]! ^= 1 << (bit & 7);
        writeFileSync(path, bytes);
        problems = [];
        const found = read().length;
        expect(found).toBeGreaterThanOrEqual(2);
        // Dates and flags of gzip may change without harm.
        if (found === 2) expect(problems).toMatchObject([{ kind: "damaged" }]);
        write([{ n: 4 }]);
        problems = [];
        expect(read()).toHaveLength(found + 1);
        expect(problems).toEqual([]);
        const aside = readdirSync(dirname(path)).filter((name) => name.includes(".damaged-"));
        expect(aside).toHaveLength(3 - found);
        for (const name of aside) {
          const offset = Number(name.split("-").at(-1));
          const kept = readFileSync(join(dirname(path), name));
          expect(kept).toEqual(bytes.subarray(offset, offset + kept.length));
          rmSync(join(dirname(path), name));
        }
      }),
    );
  });

  it("cuts off a tail of zeros, as a power cut leaves it", () => {
    write([{ n: 1 }], [{ n: 2, filler: "z".repeat(100) }]);
    const whole = readFileSync(path);
    const second = whole.readUInt32LE(16);
    for (const from of [second, second + 10, second + 25, whole.length]) {
      const zeros = Buffer.alloc(4096);
      writeFileSync(path, Buffer.concat([whole.subarray(0, from), zeros]));
      problems = [];
      expect(read()).toHaveLength(from === whole.length ? 2 : 1);
      expect(problems).toMatchObject([{ kind: "torn" }]);
      write([{ n: 3 }]);
      problems = [];
      expect(read().at(-1)).toEqual({ n: 3 });
      expect(problems).toEqual([]);
      expect(readdirSync(dirname(path))).toHaveLength(1);
    }
    writeFileSync(path, Buffer.alloc(4096));
    write([{ n: 1 }]);
    expect(read()).toEqual([{ n: 1 }]);
  });

  it("cuts before the first append that is not kept, and refuses to cut inside one", () => {
    write([{ n: 1 }, { n: 2 }], [{ n: 3 }, { n: 4 }], [{ n: 5 }]);
    const size = statSync(path).size;
    const keepBelow = (limit: number) => (record: unknown) => (record as { n: number }).n < limit;
    expect(() => openRecordWriter(path, note, keepBelow(4))).toThrow(
      /settings in manifest\.json do not fit these records/,
    );
    expect(statSync(path).size).toBe(size);
    openRecordWriter(path, note, keepBelow(3)).close();
    expect(read()).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it("notices that its file was deleted while it writes", () => {
    const writer = openRecordWriter(path, note);
    writer.append([{ n: 1 }]);
    rmSync(dirname(path), { recursive: true });
    expect(() => writer.append([{ n: 2 }])).toThrow(/was deleted while it was being written/);
    expect(() => writer.close()).toThrow(/was deleted/);
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
