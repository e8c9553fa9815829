import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { createAnalyser } from "./analyser.js";
import { type Bm25Index, byteToLength, createSearcher, lengthToByte } from "./bm25.js";
import { createIndexBuilder } from "./bm25-build.js";

const folder = "../shared/data/webshop";

function readLines<T>(name: string): readonly T[] {
  const text = gunzipSync(readFileSync(`${folder}/${name}`)).toString("utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}

interface TermVector {
  readonly type: string;
  readonly id: string;
  readonly norm: number;
  readonly dl: number;
  readonly len: number;
  readonly tf: Readonly<Record<string, number>>;
  readonly df: Readonly<Record<string, number>>;
}

interface QueryRecord {
  readonly query: string;
  readonly tokens: readonly string[];
  readonly total_matching: number;
  readonly asins: readonly string[];
  readonly scores: readonly number[];
}

describe.skipIf(!existsSync(folder))(
  "against the recorded Lucene index (skipped where ../shared/data/webshop is absent)",
  () => {
    const analyse = createAnalyser();
    let products: readonly { id: string; contents: string }[];
    let index: Bm25Index;

    beforeAll(() => {
      products = readLines("products-1000.jsonl.gz");
      const builder = createIndexBuilder(analyse);
      for (const { id, contents } of products) builder.add(id, contents);
      index = builder.finish();
    });

    it("finds the same terms equally often in every document, and rounds lengths the same way", () => {
      const text = new Map(products.map(({ id, contents }) => [id, contents]));
      const vectors = readLines<TermVector>("index-termvectors.jsonl.gz");
      const documents = vectors.filter((vector) => vector.type === "doc");
      expect(documents).toHaveLength(1000);
      for (const { id, tf, len, norm, dl } of documents) {
        const terms = analyse(text.get(id)!);
        const counts: Record<string, number> = {};
        for (const term of terms) counts[term] = (counts[term] ?? 0) + 1;
        expect({ id, tf: counts }).toEqual({ id, tf });
        expect([terms.length, lengthToByte(terms.length), byteToLength(norm)]).toEqual([
          len,
          norm,
          dl,
        ]);
      }
      const { df } = vectors.find((vector) => vector.type === "terms")!;
      expect(index.terms.size).toBe(Object.keys(df).length);
      for (const [term, number] of index.terms)
        expect([term, index.starts[number + 1]! - index.starts[number]!]).toEqual([term, df[term]]);
    });

    it("ranks all 100 recorded queries identically, with the same scores and ties", () => {
      const searcher = createSearcher(index);
      const queries = readLines<QueryRecord>("golden-queries.jsonl.gz");
      expect(queries).toHaveLength(100);
      for (const { query, tokens, total_matching, asins, scores } of queries) {
        expect(analyse(query)).toEqual(tokens);
        const { hits, matching } = searcher.search(query, 50);
        expect({
          query,
          matching,
          asins: hits.map((hit) => hit.id),
          scores: hits.map((hit) => hit.score),
        }).toEqual({ query, matching: total_matching, asins, scores: scores.map(Math.fround) });
      }
    });
  },
);
