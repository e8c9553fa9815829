import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { dose } from "@pawl/core/dose-testing.js";
import { UserError } from "@pawl/core/errors.js";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { openCorpus } from "./corpus.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-corpus-"));
afterAll(() => rmSync(folder, { recursive: true }));

function write(content: string, name = "c.jsonl"): string {
  const path = join(folder, name);
  writeFileSync(path, name.endsWith(".gz") ? gzipSync(content) : content);
  return path;
}

describe("a corpus file", () => {
  it("returns every passage, plain or compressed, with any line ends", () => {
    const passage = fc.record({ id: fc.string({ unit: "grapheme" }), contents: fc.string() });
    fc.assert(
      fc.property(
        fc.array(passage, { minLength: 1 }),
        fc.constantFrom("\n", "\r\n", "\n\n", "\n  \n"),
        fc.constantFrom("c.jsonl", "c.jsonl.gz"),
        (passages, end, name) => {
          const lines = passages.map((one) => JSON.stringify(one) + end).join("");
          const corpus = openCorpus(write(lines, name));
          expect(corpus.count).toBe(passages.length);
          expect(passages.map((_, at) => corpus.passage(at))).toEqual(passages);
        },
      ),
      { numRuns: dose(60) },
    );
  });

  it("accepts numbers as ids and a last line without a line end", () => {
    const corpus = openCorpus(write('{"id":7,"contents":"a","more":1}'));
    expect(corpus.passage(0)).toEqual({ id: "7", contents: "a" });
  });

  it("reads lines that begin with a byte order mark or many blanks, and those longer than a chunk", () => {
    const long = "ü".repeat(2 ** 22);
    const marked = `\ufeff{"id":1,"contents":"a"}\n${" ".repeat(100)}{"id":2,"contents":"b"}\n`;
    const corpus = openCorpus(
      write(`${marked}{"id":3,"contents":"${long}"}\n{"id":4,"contents":"c"}`),
    );
    expect(corpus.count).toBe(4);
    expect([0, 1, 3].map((at) => corpus.passage(at).contents)).toEqual(["a", "b", "c"]);
    expect(corpus.passage(2).contents === long).toBe(true);
  });

  it.each([
    ["", /c\.jsonl has no passages: expected one/],
    ["\n \n", /has no passages/],
    ['{"id":"1","contents":"a"}\n{"id":', /c\.jsonl, line 2 is not JSON/],
    ["\n[1]\n", /line 2 is not a JSON object/],
    ['{"contents":"a"}', /line 1 has no id: expected a string or a number, got undefined/],
    ['{"id":"1","contents":null}', /line 1 has no contents: expected a string, got object/],
  ])("says what is wrong with %j", (content, message) => {
    expect(() => openCorpus(write(content))).toThrow(message);
  });

  it("reads any bytes or says which line is wrong", () => {
    const line = fc.oneof(
      fc.json(),
      fc.string({ unit: "binary" }),
      fc.record({ id: fc.anything(), contents: fc.anything() }).map((one) => JSON.stringify(one)),
    );
    fc.assert(
      fc.property(fc.array(line), fc.uint8Array(), (lines, bytes) => {
        const path = join(folder, "any.jsonl");
        writeFileSync(path, Buffer.concat([Buffer.from(lines.join("\n")), bytes]));
        let outcome: string;
        try {
          outcome = `${openCorpus(path).count} passages`;
        } catch (error) {
          expect(error).toBeInstanceOf(UserError);
          outcome = (error as Error).message;
        }
        expect(outcome).toMatch(/^[1-9]\d* passages$|any\.jsonl(?:, line \d+ | has no passages)/);
      }),
    );
  });

  it("names a file that is missing or damaged", () => {
    expect(() => openCorpus(join(folder, "none.jsonl"))).toThrow(
      /cannot read .*none\.jsonl: ENOENT/,
    );
    const path = join(folder, "bad.jsonl.gz");
    writeFileSync(path, "not packed");
    expect(() => openCorpus(path)).toThrow(/cannot read .*bad\.jsonl\.gz: incorrect header/);
  });
});
