/** A sentence encoder behind any OpenAI-compatible `/v1/embeddings` endpoint. */

import { UserError } from "@pawl/core/errors.js";
import { postJson, type RetryPolicy } from "@pawl/core/http/http-client.js";
import { z } from "zod";
import { type Encoder, normalise } from "./encoder.js";

/** Texts per request. */
const BATCH = 64;

/** Which endpoint and model. */
export interface EndpointEncoderOptions extends Partial<RetryPolicy> {
  /** The address including the API version, such as http://localhost:8000/v1. */
  readonly url: string;
  readonly model: string;
  readonly key?: string | undefined;
}

const answer = z.object({
  data: z.array(z.object({ index: z.int().min(0), embedding: z.array(z.number()).min(1) })),
});

/** Connects to an endpoint: one text is encoded to learn the dimension. */
export async function openEndpointEncoder(options: EndpointEncoderOptions): Promise<Encoder> {
  const { model, key, timeoutMs = 60_000, retries = 3, backoffMs = 500 } = options;
  if (!/^https?:/.test(options.url) || !URL.canParse(options.url)) {
    throw new UserError(
      `the address of an embeddings endpoint looks like http://localhost:8000/v1, not ${JSON.stringify(options.url)}.`,
    );
  }
  const url = new URL(options.url);
  url.pathname = `${url.pathname.replace(/\/+$/, "").replace(/\/embeddings$/, "")}/embeddings`;
  const request = (texts: readonly string[]): Promise<readonly Float32Array[]> => {
    const body = { model, input: texts, encoding_format: "float" };
    return postJson({ url, body, key, timeoutMs, retries, backoffMs }, (json) =>
      readVectors(json, texts.length),
    );
  };
  const dimension = (await request(["a"]))[0]!.length;
  return {
    name: `${model}@${url.host}`,
    dimension,
    async encode(texts) {
      const vectors: Float32Array[] = [];
      for (let from = 0; from < texts.length; from += BATCH) {
        vectors.push(...(await request(texts.slice(from, from + BATCH))));
      }
      const other = vectors.find((vector) => vector.length !== dimension);
      if (other !== undefined) {
        throw new UserError(
          `${url.origin}${url.pathname} returned vectors of ${dimension} and of ${other.length} numbers for one model.`,
        );
      }
      return vectors;
    },
  };
}

/** The vectors in the order of the texts, which may differ from that of the answer. */
function readVectors(json: unknown, count: number): readonly Float32Array[] {
  const parsed = answer.safeParse(json);
  if (!parsed.success) {
    throw new Error(
      `expected {"data": [{"index", "embedding"}]}; ${z.prettifyError(parsed.error)}`,
    );
  }
  const vectors: Float32Array[] = [];
  for (const { index, embedding } of parsed.data.data) {
    vectors[index] = normalise(Float32Array.from(embedding));
  }
  for (let at = 0; at < count; at++) {
    if (vectors[at] === undefined)
      throw new Error(`expected ${count} vectors, number ${at} is missing`);
  }
  if (vectors.length !== count) throw new Error(`expected ${count} vectors, got ${vectors.length}`);
  return vectors;
}
