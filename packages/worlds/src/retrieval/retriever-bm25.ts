/**
 * BM25 as a retriever: over passages in memory, or over a file with an index that is cached on
 * disk.
 */
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { UserError } from "@pawl/core/errors.js";
import { mixSeed } from "@pawl/core/random.js";
import { createSearcher, type Searcher } from "./bm25.js";
import { createIndexBuilder } from "./bm25-build.js";
import { type Corpus, fileCorpus, openLines, type Places, scanCorpus } from "./corpus.js";
import { asBytes, checkWritable, loadIndex, saveIndex } from "./index-file.js";
import type { LocalRetriever } from "./retriever.js";

/**
 * From this size on the index is cached on disk: building a smaller one takes a few seconds at
 * most.
 */
const KEEP_INDEX_FROM = 2 ** 24;
/** Must change whenever the meaning of the blocks stored with the index does. */
const LAYOUT = "corpus-1";

/** Which file to search. */
export interface Bm25FileOptions {
  readonly corpus: string;
  /** Folder for the index. Default: ~/.cache/pawl. */
  readonly cache?: string | undefined;
  /** Cache the index of a corpus of at least this many bytes. */
  readonly keepIndexFrom?: number;
}

/** BM25 over a corpus that is read completely. */
export function bm25Retriever(corpus: Corpus): LocalRetriever {
  const builder = createIndexBuilder();
  for (let number = 0; number < corpus.count; number++) {
    const { id, contents } = corpus.passage(number);
    builder.add(id, contents);
  }
  return retrieverOf(corpus, createSearcher(builder.finish()));
}

/** BM25 over a JSONL file of `{id, contents}`; the index of a large one is built once. */
export function openBm25Retriever(options: Bm25FileOptions): LocalRetriever {
  const file = openLines(options.corpus);
  const kept = file.size >= (options.keepIndexFrom ?? KEEP_INDEX_FROM);
  const path = cachePath(options.corpus, "index", options.cache);
  const key = `${LAYOUT} ${file.key}`;
  if (kept) {
    const loaded = loadIndex(path, key);
    if ("index" in loaded) {
      const { lineStarts, lineEnds } = loaded.extra;
      const places = { starts: floats(lineStarts!), ends: floats(lineEnds!) };
      return retrieverOf(fileCorpus(file, places), createSearcher(loaded.index));
    }
    // Before minutes of work, not after.
    checkWritable(dirname(path));
  }
  const builder = createIndexBuilder();
  const lineOf = new Map<string, number>();
  const places: Places = scanCorpus(file, ({ id, contents }) => {
    const earlier = lineOf.get(id);
    if (earlier !== undefined)
      throw new UserError(
        `${file.path}: passages ${earlier} and ${lineOf.size + 1} have the same id ${JSON.stringify(id)}. Give every passage a unique id.`,
      );
    lineOf.set(id, lineOf.size + 1);
    builder.add(id, contents);
  });
  const index = builder.finish();
  if (kept) {
    const lines = { lineStarts: asBytes(places.starts), lineEnds: asBytes(places.ends) };
    saveIndex(path, key, index, lines);
  }
  return retrieverOf(fileCorpus(file, places), createSearcher(index));
}

function retrieverOf(corpus: Corpus, searcher: Searcher): LocalRetriever {
  return {
    local: true,
    name: `BM25 over ${corpus.name}`,
    count: corpus.count,
    search: (query, limit) =>
      searcher
        .search(query, limit)
        .hits.map(({ document, score }) => ({ passage: corpus.passage(document), score })),
  };
}

/**
 * Where something derived from a corpus is cached; corpora with the same name in different folders
 * stay separate.
 */
export function cachePath(corpus: string, kind: string, cache?: string): string {
  const folder = cache ?? join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl");
  const stem = basename(corpus).replace(/\..*$/, "");
  return join(folder, `${stem}-${mixSeed(resolve(corpus)).toString(16)}.${kind}`);
}

function floats(block: Uint8Array): Float64Array {
  return new Float64Array(block.buffer, block.byteOffset, block.byteLength / 8);
}
