/**
 * Dense retrieval: the passages whose vectors have the largest inner product with the query's, by
 * comparing all of them. The corpus is encoded once, at the first search, and its vectors are
 * cached on disk.
 */

import { loadVectors, saveVectors, type VectorTable } from "@pawl/models/embeddings/cache.js";
import {
  type Encoder,
  type EncoderPrefixes,
  encoderPrefixes,
} from "@pawl/models/embeddings/encoder.js";
import type { Corpus } from "./corpus.js";
import { createBestHits, type WaitingRetriever } from "./retriever.js";

/** Passages encoded at a time: enough to sort by length, few enough to hold. */
const CHUNK = 1024;

/** What to search, and how. */
export interface DenseOptions {
  readonly corpus: Corpus;
  /** Opens the encoder; called at the first search. */
  readonly encoder: () => Promise<Encoder>;
  /** What is written before queries and passages for the encoder. Default: nothing. */
  readonly prefixes?: EncoderPrefixes | undefined;
  /** The file that stores the vectors. Default: they are not stored. */
  readonly file?: string | undefined;
}

/** Dense retrieval over a corpus; nothing is loaded or encoded before the first search. */
export function denseRetriever(options: DenseOptions): WaitingRetriever {
  const { corpus, prefixes = encoderPrefixes.none } = options;
  let ready: ReturnType<typeof prepare> | undefined;
  const names = Array.from({ length: corpus.count }, () => "");
  // Equal products rank in the order of the corpus.
  const order = new Uint32Array(corpus.count).map((_, at) => at);
  return {
    local: false,
    name: `dense retrieval over ${corpus.name}`,
    async search(query, limit) {
      ready ??= prepare(options).catch((error: unknown) => {
        // What was missing may exist at the next search.
        ready = undefined;
        throw error;
      });
      const { encoder, table } = await ready;
      const [vector] = await encoder.encode([prefixes.query + query]);
      const best = createBestHits(Math.min(limit, corpus.count), order);
      for (let number = 0; number < corpus.count; number++)
        best.offer(number, innerProduct(table, number, vector!));
      return best
        .sorted(names)
        .map(({ document, score }) => ({ passage: corpus.passage(document), score }));
    },
  };
}

async function prepare({
  corpus,
  encoder: open,
  prefixes: { passage: prefix } = encoderPrefixes.none,
  file,
}: DenseOptions): Promise<{ readonly encoder: Encoder; readonly table: VectorTable }> {
  const encoder = await open();
  // Without a prefix the key is as it was before there were any, so that stored vectors stay usable.
  const prefixed = prefix === "" ? "" : ` after ${JSON.stringify(prefix)}`;
  const key = `${corpus.key} ${encoder.name} ${encoder.dimension}${prefixed}`;
  const kept = file === undefined ? undefined : await loadVectors(file, key);
  const table = kept ?? (await encodeCorpus(corpus, encoder, prefix));
  if (kept === undefined && file !== undefined) await saveVectors(file, key, table);
  return { encoder, table };
}

async function encodeCorpus(
  corpus: Corpus,
  encoder: Encoder,
  prefix: string,
): Promise<VectorTable> {
  const { dimension } = encoder;
  const values = new Float32Array(corpus.count * dimension);
  for (let from = 0; from < corpus.count; from += CHUNK) {
    const numbers = Array.from(
      { length: Math.min(CHUNK, corpus.count - from) },
      (_, i) => from + i,
    );
    const vectors = await encoder.encode(
      numbers.map((number) => prefix + corpus.passage(number).contents),
    );
    for (const [i, vector] of vectors.entries()) values.set(vector, (from + i) * dimension);
  }
  return { dimension, values };
}

function innerProduct(
  { dimension, values }: VectorTable,
  row: number,
  vector: Float32Array,
): number {
  let sum = 0;
  const from = row * dimension;
  for (let at = 0; at < dimension; at++) sum += values[from + at]! * vector[at]!;
  // Rounded as it will be stored, so that equal scores compare as equal.
  return Math.fround(sum);
}
