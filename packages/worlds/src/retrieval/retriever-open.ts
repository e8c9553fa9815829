/** Opens the retriever chosen by an environment's options or the command line. */

import { UserError } from "@pawl/core/errors.js";
import { postJson, type RetryPolicy } from "@pawl/core/http/http-client.js";
import { type Encoder, encoderPrefixes } from "@pawl/models/embeddings/encoder.js";
import { openEndpointEncoder } from "@pawl/models/embeddings/endpoint-encoder.js";
import { z } from "zod";
import { type Corpus, openCorpus } from "./corpus.js";
import type { PassageHit, Retriever, WaitingRetriever } from "./retriever.js";
import { bm25Retriever, cachePath, openBm25Retriever } from "./retriever-bm25.js";
import { denseRetriever } from "./retriever-dense.js";

/** Which server, and how long to wait for it. */
interface HttpRetrieverOptions extends Partial<RetryPolicy> {
  /** The address, with or without `/retrieve`. */
  readonly url: string;
}

const id = z.union([z.string(), z.number()]).transform(String);
const document = z.object({ id: id.optional(), contents: z.string() });
// Servers may leave out scores even if they were requested.
const hit = z.union([
  z.object({ document, score: z.number() }),
  document.transform((only) => ({ document: only, score: Number.NaN })),
]);
const answer = z.object({ result: z.array(z.array(hit)) });

/** The retriever at an address; no request is made before the first search. */
export function httpRetriever(options: HttpRetrieverOptions): WaitingRetriever {
  const url = retrieveUrl(options.url);
  const { timeoutMs = 30_000, retries = 3, backoffMs = 250 } = options;
  return {
    local: false,
    name: `the retriever at ${url.origin}${url.pathname}`,
    async search(query, limit, signal) {
      const body = { queries: [query], topk: limit, return_scores: true };
      try {
        return await postJson({ url, body, timeoutMs, retries, backoffMs, signal }, (json) =>
          readAnswer(json, limit),
        );
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof UserError)) throw error;
        throw new UserError(
          `the retriever does not answer: ${error.message}. Check the address, or start one with pawl serve retriever.`,
          { cause: error },
        );
      }
    },
  };
}

function readAnswer(json: unknown, limit: number): readonly PassageHit[] {
  const parsed = answer.safeParse(json);
  if (!parsed.success)
    throw new Error(
      `expected {"result": [[{"document", "score"}]]}; ${z.prettifyError(parsed.error)}`,
    );
  const { result } = parsed.data;
  if (result.length !== 1) throw new Error(`expected results for 1 query, got ${result.length}`);
  return result[0]!.slice(0, limit).map(({ document, score }, rank) => ({
    passage: { id: document.id ?? `#${rank + 1}`, contents: document.contents },
    score,
  }));
}

function retrieveUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UserError(
      `the address of a retriever looks like http://127.0.0.1:8000/retrieve, not ${JSON.stringify(text)}.`,
    );
  if (url.username !== "" || url.password !== "")
    throw new UserError("the address of a retriever must not contain a user name or password.");
  if (/^\/*$/.test(url.pathname)) url.pathname = "/retrieve";
  return url;
}

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
