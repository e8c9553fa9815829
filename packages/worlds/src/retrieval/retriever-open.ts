/** Opens the retriever chosen by an environment's options or the command line. */

import { UserError } from "@pawl/core/errors.js";
import type { Encoder } from "@pawl/models/embeddings/encoder.js";
import { encoderPrefixes } from "@pawl/models/embeddings/encoder-prefixes.js";
import { openEndpointEncoder } from "@pawl/models/embeddings/endpoint-encoder.js";
import { type Corpus, openCorpus } from "./corpus.js";
import type { Retriever } from "./retriever.js";
import { bm25Retriever, cachePath, openBm25Retriever } from "./retriever-bm25.js";
import { denseRetriever } from "./retriever-dense.js";
import { httpRetriever } from "./retriever-http.js";

/** Which retriever to use, and on what. */
export interface RetrieverChoice {
  /** `bm25`, `dense`, or the address of a server. */
  readonly retriever: string;
  /** A JSONL file or passages in memory; a server has its own. */
  readonly corpus?: string | Corpus | undefined;
  /** For dense retrieval: a folder with an ONNX model, or the address of an embeddings endpoint. */
  readonly encoder?: string | undefined;
  /** The model's name at an embeddings endpoint. */
  readonly encoderModel?: string | undefined;
  /** For dense retrieval: which words the encoder needs before queries and passages. */
  readonly prefixes?: keyof typeof encoderPrefixes | undefined;
  readonly cache?: string | undefined;
}

/** Opens a retriever; anything missing or contradictory is a `UserError`. */
export function openRetriever(choice: RetrieverChoice): Retriever {
  const { retriever, corpus, cache, prefixes = "none" } = choice;
  refuseUnused(choice);
  if (/^https?:/i.test(retriever)) return httpRetriever({ url: retriever });
  if (corpus === undefined)
    throw new UserError(
      "there is no corpus to search: give a JSONL file of {id, contents}, or the address of a retriever that has one.",
    );
  if (retriever === "bm25")
    return typeof corpus === "string"
      ? openBm25Retriever({ corpus, cache })
      : bm25Retriever(corpus);
  if (retriever !== "dense")
    throw new UserError(
      `a retriever is bm25, dense, or an address like http://127.0.0.1:8000/retrieve, not ${JSON.stringify(retriever)}.`,
    );
  const isFile = typeof corpus === "string";
  return denseRetriever({
    corpus: isFile ? openCorpus(corpus) : corpus,
    encoder: encoderOf(choice),
    prefixes: encoderPrefixes[prefixes],
    ...(isFile && { file: cachePath(corpus, "vectors", cache) }),
  });
}

/** Settings that this choice would ignore. */
function refuseUnused(choice: RetrieverChoice): void {
  const { retriever, corpus, encoder, encoderModel, cache, prefixes = "none" } = choice;
  const isServer = /^https?:/i.test(retriever);
  const dense = {
    encoder,
    encoderModel,
    prefixes: prefixes === "none" ? undefined : prefixes,
  };
  for (const [name, value] of Object.entries(dense))
    if (value !== undefined && retriever !== "dense")
      throw new UserError(
        `${name}: ${value} is for dense retrieval, and the retriever is ${retriever}: set retriever to dense, or leave ${name} out.`,
      );
  if (encoderModel !== undefined && encoder !== undefined && !/^https?:/i.test(encoder))
    throw new UserError(
      `encoderModel: ${encoderModel} is the name of a model at an endpoint, and the encoder is the folder ${encoder}: leave encoderModel out.`,
    );
  // Passages in memory may be the ones that the server has: `pawl serve retriever` serves them.
  if (isServer && typeof corpus === "string")
    throw new UserError(
      `corpus: ${retriever} searches a corpus of its own, and ${corpus} is another: leave one of them out.`,
    );
  if (cache !== undefined && typeof corpus !== "string")
    throw new UserError(
      `cache: ${cache} is for the index or vectors of a corpus in a file, and here ${isServer ? "a server searches" : "the passages are made up"}: leave cache out.`,
    );
}

function encoderOf({ encoder, encoderModel }: RetrieverChoice): () => Promise<Encoder> {
  if (encoder === undefined)
    throw new UserError(
      "dense retrieval needs an encoder: a folder with tokenizer.json and model.onnx, or the address of an embeddings endpoint.",
    );
  if (!/^https?:/i.test(encoder)) {
    return async () => {
      // Imported lazily: it loads ONNX Runtime, which most searches do not need.
      const { openOnnxEncoder } = await import("@pawl/models/embeddings/onnx-encoder.js");
      return openOnnxEncoder({ folder: encoder });
    };
  }
  if (encoderModel === undefined)
    throw new UserError(`no model name for ${encoder}: set encoderModel.`);
  const key = process.env.OPENAI_API_KEY?.trim() || undefined;
  return () => openEndpointEncoder({ url: encoder, model: encoderModel, key });
}
