/**
 * Whether a sampler that is told to read new weights does.
 *
 * It gets a copy of the weights whose output head is the same for every token, so that all tokens are equally
 * probable. Who tells another log-probability has kept the old head: of all weights the one that is kept in practice,
 * because it may be a second copy of the embedding (vLLM 0.32 on CPUs, where a model's head is its embedding).
 */
import { constants } from "node:fs";
import { cp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "../engine.js";
import { openSafetensors } from "../weights/safetensors.js";
import { EMBEDDING, OUTPUT_HEAD } from "../weights/tensor-names.js";
import type { SamplerServer } from "./dialects.js";

/** A file of floats of any length filled with this byte holds one small positive number throughout. */
const FILLING = 0x3c;
const CHUNK_BYTES = 1 << 24;
/** Wide enough for 16-bit arithmetic, narrow enough for a head that was learnt for a moment. */
const TOLERANCE = 0.01;

/** Throws where the sampler goes on with old weights; leaves it with weights of no use. */
export async function checkReload(
  server: SamplerServer,
  weights: string,
  vocabularySize: number,
): Promise<void> {
  const changed = `${weights}-even`;
  try {
    await cp(weights, changed, { recursive: true, mode: constants.COPYFILE_FICLONE });
    await evenHead(join(changed, "model.safetensors"));
    await server.reload(changed);
  } finally {
    await rm(changed, { recursive: true, force: true });
  }
  const plain = { temperature: 1, topK: 0, topP: 1, stopTokens: [], seed: 0 };
  const { logprobs } = await server.draw({ ...plain, prompt: [1], maxTokens: 1 });
  const expected = -Math.log(vocabularySize);
  if (!(Math.abs(logprobs[0]! - expected) < TOLERANCE))
    throw new EngineError(
      `${server.name} goes on with old weights, or with another vocabulary: it was given an output head by which each of ${vocabularySize} tokens has the log-probability ${expected.toFixed(3)}, and tells ${logprobs[0]}. On a CPU vLLM keeps the old head of a model whose head is its embedding (tie_word_embeddings): there, train a model with a head of its own`,
    );
}

/** Makes all rows of the output head equal, in place; where the file has none, the embedding is the head. */
async function evenHead(file: string): Promise<void> {
  const { tensors } = await openSafetensors(file);
  const head = tensors.get(OUTPUT_HEAD) ?? tensors.get(EMBEDDING);
  if (head === undefined) throw new EngineError(`${file} holds no ${OUTPUT_HEAD} or ${EMBEDDING}`);
  const filling = Buffer.alloc(Math.min(CHUNK_BYTES, head.bytes), FILLING);
  const handle = await open(file, "r+");
  try {
    for (let done = 0; done < head.bytes; ) {
      const length = Math.min(filling.length, head.bytes - done);
      done += (await handle.write(filling, 0, length, head.start + done)).bytesWritten;
    }
  } finally {
    await handle.close();
  }
}
