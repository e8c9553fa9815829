/**
 * Checks that a sampler really reloads its weights.
 *
 * It gets a copy of the weights whose output head is the same for every token, so that all tokens
 * are equally probable. If it returns another log-probability, it has kept the old head. In
 * practice that is the weight that is kept, because it may be a second copy of the embedding (vLLM
 * 0.32 on CPUs, with tied embeddings).
 */
import { constants } from "node:fs";
import { cp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "@pawl/core/engine/engine.js";
import { openSafetensors } from "@pawl/models/weights/safetensors.js";
import { EMBEDDING, OUTPUT_HEAD } from "@pawl/models/weights/tensor-names.js";
import type { SamplerServer } from "./dialects.js";

/** A file of floats of any length filled with this byte holds one small positive number throughout. */
const FILLING = 0x3c;
const CHUNK_BYTES = 1 << 24;
/** Wide enough for 16-bit arithmetic, narrow enough to detect a head after very little training. */
const TOLERANCE = 0.01;

/** Throws if the sampler keeps old weights; leaves it with useless weights. */
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
      `${server.name} keeps old weights, or has a different vocabulary: it was given an output head under which each of ${vocabularySize} tokens has the log-probability ${expected.toFixed(3)}, but it returned ${logprobs[0]}. On a CPU, vLLM keeps the old head of a model with tied embeddings (tie_word_embeddings): train a model with an untied head there`,
    );
}

/**
 * Makes all rows of the output head equal, in place; if the file has no head, the embedding is the
 * head.
 */
async function evenHead(file: string): Promise<void> {
  const { tensors } = await openSafetensors(file);
  const head = tensors.get(OUTPUT_HEAD) ?? tensors.get(EMBEDDING);
  if (head === undefined)
    throw new EngineError(`${file} has neither ${OUTPUT_HEAD} nor ${EMBEDDING}`);
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
