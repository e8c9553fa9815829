import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "@pawl/core/dose-testing.js";
import { type Encoder, encoderPrefixes, normalise } from "@pawl/models/embeddings/encoder.js";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { memoryCorpus, type Passage } from "./corpus.js";
import { bm25Retriever, openBm25Retriever } from "./retriever-bm25.js";
import { denseRetriever } from "./retriever-dense.js";
import { openRetriever } from "./retriever-open.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-retriever-"));
afterAll(() => rmSync(folder, { recursive: true }));

const passages: readonly Passage[] = [
  { id: "a", contents: "Oak\nThe oak is a tree." },
  { id: "b", contents: "Lamp\nA lamp of oak, and another lamp." },
  { id: "c", contents: "★ Ünïcode\nLeuchte aus Eiche 橡木" },
  { id: "d", contents: "" },
];
const corpus = memoryCorpus("test", "k", passages);
const lines = passages.map((one) => `${JSON.stringify(one)}\n`).join("");

describe("BM25 over a corpus", () => {
  it("finds passages, best first, and caches the index of a large file", () => {
    const path = join(folder, "own.jsonl");
    const cache = join(folder, "cache");
    writeFileSync(path, lines);
    const expected = bm25Retriever(corpus).search("lamp", 5);
    expect(expected.map(({ passage }) => passage.id)).toEqual(["b"]);
    const open = () => openBm25Retriever({ corpus: path, cache, keepIndexFrom: 1 });
    expect(open().search("lamp", 5)).toEqual(expected);
    expect(readdirSync(cache)).toEqual([expect.stringMatching(/^own-[0-9a-f]+\.index$/)]);
    const again = open();
    expect([again.count, again.search("lamp", 5)]).toEqual([4, expected]);
    writeFileSync(path, lines.replaceAll("lamp", "door"));
    expect(open().search("lamp", 5)).not.toEqual(expected);
    expect(open().search("door", 5)).toHaveLength(1);
  });

  it("rejects two passages with the same id, and a folder that is not writable", () => {
    const path = join(folder, "twice.jsonl");
    writeFileSync(path, lines + lines);
    expect(() => openBm25Retriever({ corpus: path })).toThrow(
      /twice\.jsonl: passages 1 and 5 have the same id "a"/,
    );
    expect(() => openBm25Retriever({ corpus: path, cache: path, keepIndexFrom: 1 })).toThrow(
      /the index cannot be stored in .* Set the option cache/,
    );
  });

  it("answers any query, however long or strange", () => {
    const retriever = bm25Retriever(corpus);
    const text = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }));
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 9 }), (query, limit) => {
        const found = retriever.search(query, limit);
        expect(found.length).toBeLessThanOrEqual(limit);
        for (const { passage, score } of found) {
          expect(passages).toContain(passage);
          expect(score).toBeGreaterThan(0);
        }
      }),
    );
    expect(retriever.search("oak ".repeat(25_000), 1)[0]?.passage.id).toBe("a");
    expect(retriever.search("x".repeat(100_000), 1)).toEqual([]);
    expect(retriever.search("橡木", 1)[0]?.passage.id).toBe("c");
    expect(bm25Retriever(memoryCorpus("none", "", [])).search("oak", 3)).toEqual([]);
  });
});

/** Counts letters: a real, if modest, encoder. */
function letterEncoder(): Encoder & { readonly encoded: string[] } {
  const encoded: string[] = [];
  return {
    name: "letters",
    dimension: 26,
    encoded,
    async encode(texts) {
      encoded.push(...texts);
      return texts.map((text) => {
        const vector = new Float32Array(26);
        for (const [letter] of text.toLowerCase().matchAll(/[a-z]/g))
          vector[letter.charCodeAt(0) - 97]!++;
        return normalise(vector);
      });
    },
  };
}

describe("dense retrieval", () => {
  it("ranks all passages by the inner product, equal ones in their order", async () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c", " ") });
    await fc.assert(
      fc.asyncProperty(fc.array(word, { minLength: 1 }), word, async (texts, query) => {
        const encoder = letterEncoder();
        const some = texts.map((contents, at) => ({ id: `${at}`, contents }));
        const retriever = denseRetriever({
          corpus: memoryCorpus("t", "", some),
          encoder: async () => encoder,
        });
        const found = await retriever.search(query, texts.length + 1);
        const [own] = await encoder.encode([query]);
        const vectors = await encoder.encode(texts);
        const products = vectors.map((vector) =>
          Math.fround(vector.reduce((sum, value, at) => sum + value * own![at]!, 0)),
        );
        const order = products
          .map((_, at) => at)
          .sort((a, b) => products[b]! - products[a]! || a - b);
        expect(found.map(({ passage }) => Number(passage.id))).toEqual(order);
        expect(found.map(({ score }) => score)).toEqual(order.map((at) => products[at]));
      }),
      { numRuns: dose(50) },
    );
  });

  it("encodes the corpus once, stores it on disk, and encodes it again when it or the encoder changes", async () => {
    const file = join(folder, "deep", "own.vectors");
    const search = async (key: string, name: string): Promise<number> => {
      const encoder = { ...letterEncoder(), name };
      const retriever = denseRetriever({
        corpus: memoryCorpus("t", key, passages),
        encoder: async () => encoder,
        file,
      });
      const first = await retriever.search("The oak is a tree", 1);
      expect(first[0]?.passage.id).toBe("a");
      expect(await retriever.search("The oak is a tree", 1)).toEqual(first);
      return encoder.encoded.length;
    };
    expect(await search("1", "x")).toBe(6);
    expect(await search("1", "x")).toBe(2);
    expect(await search("2", "x")).toBe(6);
    expect(await search("2", "y")).toBe(6);
    writeFileSync(file, "damaged");
    expect(await search("2", "y")).toBe(6);
  });

  it("writes an encoder's prefixes before queries and passages, and keeps their vectors apart", async () => {
    const file = join(folder, "prefixed.vectors");
    const search = async (prefixes?: keyof typeof encoderPrefixes) => {
      const encoder = letterEncoder();
      const retriever = denseRetriever({
        corpus,
        encoder: async () => encoder,
        file,
        ...(prefixes && { prefixes: encoderPrefixes[prefixes] }),
      });
      await retriever.search("oak", 1);
      return encoder.encoded;
    };
    const texts = passages.map(({ contents }) => contents);
    expect(await search()).toEqual([...texts, "oak"]);
    expect(await search("none")).toEqual(["oak"]);
    const prefixed = [...texts.map((text) => `passage: ${text}`), "query: oak"];
    expect(await search("e5")).toEqual(prefixed);
    expect(await search("e5")).toEqual(["query: oak"]);
  });

  it("retries the encoder after a failure", async () => {
    let tries = 0;
    const retriever = denseRetriever({
      corpus,
      encoder: async () => {
        if (tries++ === 0) throw new Error("not there yet");
        return letterEncoder();
      },
    });
    await expect(retriever.search("oak", 1)).rejects.toThrow("not there yet");
    expect(await retriever.search("oak", 1)).toHaveLength(1);
  });
});

describe("choosing a retriever", () => {
  it.each([
    [{ retriever: "bm26", corpus }, /bm25, dense, or an address like http.*, not "bm26"/],
    [{ retriever: "bm25" }, /there is no corpus to search/],
    [{ retriever: "dense", corpus }, /dense retrieval needs an encoder/],
    [
      { retriever: "dense", corpus, encoder: "http://x/v1" },
      /no model name for .*set encoderModel/,
    ],
    [
      { retriever: "bm25", corpus, prefixes: "e5" as const },
      /prefixes: e5 .*the retriever is bm25/,
    ],
    [{ retriever: "http://h/", prefixes: "e5" as const }, /prefixes: e5 .*the retriever is http/],
    [{ retriever: "bm25", corpus, encoder: "e5" }, /encoder: e5 is for dense.*retriever is bm25/],
    [{ retriever: "bm25", corpus, encoderModel: "m" }, /encoderModel: m is for dense/],
    [
      { retriever: "dense", corpus, encoder: "e5", encoderModel: "m" },
      /encoderModel: m is the name of a model at an endpoint, and the encoder is the folder e5/,
    ],
    [{ retriever: "http://h/", corpus: "a.jsonl" }, /corpus: http.*own, and a\.jsonl is another/],
    [{ retriever: "bm25", corpus, cache: "c" }, /cache: c is for .*the passages are made up/],
    [{ retriever: "http://h/", cache: "c" }, /cache: c is for .*a server searches/],
    [{ retriever: "http://u:p@h/" }, /must not contain a user name/],
  ])("says what is missing: %j", (choice, message) => {
    expect(() => openRetriever(choice)).toThrow(message);
  });

  it("reports a folder that is not an encoder at the first search", async () => {
    const retriever = openRetriever({ retriever: "dense", corpus, encoder: folder });
    await expect(retriever.search("oak", 1)).rejects.toThrow(/is not a sentence encoder: expected/);
  });
});
