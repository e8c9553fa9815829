/** A small model with every option: shared key-value heads, biases, an untied output head. */

import type { Engine } from "@pawl/core/engine/engine.js";
import { createCore, type EmbeddedOptions } from "@pawl/engine-cpu/core.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";

const config: ModelConfig = {
  vocabularySize: 37,
  hiddenSize: 32,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 8,
  mlpSize: 48,
  maxContext: 96,
  ropeTheta: 10_000,
  normEps: 1e-6,
  tiedEmbeddings: false,
  qkvBias: true,
};

/** Options of an embedded engine with this model. */
export const testModel: EmbeddedOptions = { model: { config }, seed: 1, threads: 1 };

/** Writes it as a checkpoint folder. */
export async function writeTestModel(folder: string): Promise<void> {
  const engine = await inProcess(testModel);
  await engine.save(folder, { optimizer: false });
  await engine.dispose();
}

/** An engine in this thread: small models start sooner without a worker. */
export async function inProcess(options: EmbeddedOptions): Promise<Engine> {
  const core = await createCore(options, 1);
  return {
    ...core,
    useVocabulary: (vocabulary) => void core.useVocabulary(vocabulary()),
    get capabilities() {
      return core.capabilities();
    },
  };
}
