import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "@pawl/core/dose-testing.js";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { type Bm25Index, byteToLength, createSearcher, lengthToByte } from "./bm25.js";
import { createIndexBuilder } from "./bm25-build.js";
import { loadIndex, saveIndex } from "./index-file.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-index-"));
afterAll(() => rmSync(folder, { recursive: true }));

function build(texts: readonly string[]): Bm25Index {
  const builder = createIndexBuilder();
  for (const [at, text] of texts.entries()) builder.add(`d${texts.length - at}`, text);
  return builder.finish();
}

/** The formula in double precision, term by term. */
function reference(texts: readonly string[], query: readonly string[]): number[] {
  const words = texts.map((text) => text.split(" ").filter(Boolean));
  const filled = words.filter((one) => one.length > 0);
  const mean = filled.reduce((sum, one) => sum + one.length, 0) / filled.length;
  return words.map((own) => {
    let score = 0;
    for (const term of query) {
      const frequency = own.filter((word) => word === term).length;
      const spread = words.filter((one) => one.includes(term)).length;
      const idf = Math.log(1 + (filled.length - spread + 0.5) / (spread + 0.5));
      const length = byteToLength(lengthToByte(own.length));
      score += (idf * frequency) / (frequency + 0.9 * (0.6 + (0.4 * length) / mean));
    }
    return score;
  });
}

describe("BM25", () => {
  it("agrees with the formula in double precision, and breaks ties by id", () => {
    const word = fc.constantFrom("red", "blue", "hat", "shoe", "lamp", "oak");
    const text = fc.array(word, { maxLength: 60 }).map((words) => words.join(" "));
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 1, maxLength: 20 }),
        fc.array(word),
        (texts, query) => {
          const { hits, matching } = createSearcher(build(texts)).search(query.join(" "), 1000);
          const expected = reference(texts, query);
          expect(matching).toBe(expected.filter((score) => score > 0).length);
          expect(hits).toHaveLength(matching);
          for (const [at, hit] of hits.entries()) {
            expect(hit.score).toBeCloseTo(expected[hit.document]!, 4);
            const next = hits[at + 1];
            if (next === undefined) continue;
            expect(hit.score > next.score || (hit.score === next.score && hit.id < next.id)).toBe(
              true,
            );
          }
        },
      ),
    );
  });

  it("gives the same hits with a smaller limit, and when repeated", () => {
    const texts = Array.from(
      { length: 5000 },
      (_, at) => `lamp ${at % 7 ? "oak" : ""} n${at % 90}`,
    );
    const searcher = createSearcher(build(texts));
    const all = searcher.search("oak lamp n3", 5000);
    expect(all.matching).toBe(5000);
    expect(searcher.search("oak lamp n3", 50).hits).toEqual(all.hits.slice(0, 50));
    expect(searcher.search("oak lamp n3", 0).hits).toEqual([]);
  });

  it("finds nothing in an empty collection, for an empty query and for unknown words", () => {
    expect(createSearcher(build([])).search("lamp", 10)).toEqual({ hits: [], matching: 0 });
    const searcher = createSearcher(build(["lamp", ""]));
    expect(searcher.search("", 10).matching).toBe(0);
    expect(searcher.search("the chair", 10).matching).toBe(0);
  });

  it("rejects two documents with the same id", () => {
    const builder = createIndexBuilder();
    builder.add("a", "lamp");
    builder.add("a", "chair");
    expect(() => builder.finish()).toThrow(/Two documents have the id "a"/);
  });
});

describe("lengths in a byte", () => {
  it("are exact below 40, never larger than the length, and off by less than an eighth", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 - 1 }), (length) => {
        const stored = byteToLength(lengthToByte(length));
        expect(lengthToByte(length)).toBeLessThan(256);
        expect(stored).toBeLessThanOrEqual(length);
        expect(length < 40 ? stored === length : (length - 24) / (stored - 24) < 1.125).toBe(true);
      }),
    );
  });
});

describe("an index on disk", () => {
  const index = build(["red oak lamp", "blue hat", "", "red red shoe ★"]);
  const path = join(folder, "deep", "index.bin");
  saveIndex(path, "source 1", index, { note: new Uint8Array([1, 2, 3]) });

  it("survives a round trip, with the caller's blocks", () => {
    const loaded = loadIndex(path, "source 1");
    if ("unusable" in loaded) throw new Error(loaded.unusable);
    expect(loaded.index).toEqual(index);
    expect([...loaded.extra.note!]).toEqual([1, 2, 3]);
  });

  it("is not used if it is from another source, missing, truncated, damaged or something else", () => {
    const bytes = readFileSync(path);
    const broken = join(folder, "broken.bin");
    const tell = (content: Uint8Array): unknown => {
      writeFileSync(broken, content);
      return loadIndex(broken, "source 1");
    };
    expect(loadIndex(path, "source 2")).toEqual({ unusable: "it was made from other files" });
    expect(loadIndex(join(folder, "none"), "x")).toEqual({ unusable: "there is none yet" });
    expect(tell(bytes.subarray(0, -1))).toEqual({ unusable: "block frequencies is damaged" });
    expect(tell(Buffer.from("{}\n"))).toEqual({ unusable: "it was made by another version" });
    expect(tell(Buffer.alloc(0))).toEqual({ unusable: "it was made by another version" });
    for (let at = 0; at < bytes.length; at += dose(1, 7)) {
      const flipped = Buffer.from(bytes);
      flipped[at]! ^= 1;
      expect([at, tell(flipped)]).toEqual([at, { unusable: expect.any(String) }]);
    }
  });
});
