/** A Search-R1 style retriever behind HTTP: `POST /retrieve` with `{queries, topk, return_scores}`. */

import { UserError } from "@pawl/core/errors.js";
import { postJson, type RetryPolicy } from "@pawl/core/http/http-client.js";
import { z } from "zod";
import type { PassageHit, WaitingRetriever } from "./retriever.js";

/** Which server, and how long to wait for it. */
export interface HttpRetrieverOptions extends Partial<RetryPolicy> {
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
