/** The models and the work that engines are compared with. */
import type { Engine } from "@pawl/core/engine/engine.js";
import { input, logprob, mul, neg } from "@pawl/core/objectives/expression.js";
import { createRandom } from "@pawl/core/random.js";
import { presetConfig } from "@pawl/engine-cpu/init.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";

export const reference = modelConfig({ dim: 256, layers: 4, heads: 4, inner: 1024, vocab: 2048 });
export const million = modelConfig({ dim: 128, layers: 4, heads: 4, inner: 512, vocab: 256 });
/** The default run's. */
export const tiny = presetConfig("tiny", 420, 768);

function modelConfig(size: {
  readonly dim: number;
  readonly layers: number;
  readonly heads: number;
  readonly inner: number;
  readonly vocab: number;
}): ModelConfig {
  return {
    vocabularySize: size.vocab,
    hiddenSize: size.dim,
    layers: size.layers,
    heads: size.heads,
    kvHeads: size.heads,
    headSize: size.dim / size.heads,
    mlpSize: size.inner,
    maxContext: 1024,
    ropeTheta: 10_000,
    normEps: 1e-6,
    tiedEmbeddings: false,
    qkvBias: false,
  };
}

export function peerModel(config: ModelConfig, compiled = false) {
  return {
    do: "model",
    dim: config.hiddenSize,
    layers: config.layers,
    heads: config.heads,
    inner: config.mlpSize,
    vocab: config.vocabularySize,
    tied: config.tiedEmbeddings,
    compiled,
  };
}

export const random = createRandom(1);
export const randomIds = (count: number, config: ModelConfig) =>
  Array.from({ length: count }, () => random.int(config.vocabularySize));

export const objective = { loss: mul(neg(logprob), input("weight")), metrics: {} };

/** An optimiser step on sequences of so many targets each, in seconds. */
export async function trainOnce(
  engine: Engine,
  config: ModelConfig,
  batch: number,
  length: number,
): Promise<number> {
  // One token more than is predicted, as on the other side.
  return learnOnce(engine, config, Array<number>(batch).fill(length + 1));
}

/** An optimiser step on sequences of these lengths, in seconds. */
export async function learnOnce(
  engine: Engine,
  config: ModelConfig,
  lengths: readonly number[],
): Promise<number> {
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  const sequences = lengths.map((length) => {
    const ids = randomIds(length, config);
    return { ids, inputs: { weight: ids.map(() => 1 / tokens) } };
  });
  const begin = performance.now();
  await engine.forwardBackward(sequences, objective);
  await engine.optimStep({ learningRate: 1e-3 });
  return (performance.now() - begin) / 1000;
}

/** 32 tokens after each of some prompts of 128, `count` times, in seconds. */
export async function sampleOnce(
  engine: Engine,
  config: ModelConfig,
  groups: number,
  count: number,
): Promise<number> {
  const requests = Array.from({ length: groups }, (_, seed) => ({
    prompt: randomIds(128, config),
    maxTokens: 32,
    count,
    seed,
  }));
  const begin = performance.now();
  await engine.sample(requests);
  return (performance.now() - begin) / 1000;
}

/** Lengths of the default run's episodes, about. */
export const episodeLengths = (count: number) =>
  Array.from({ length: count }, () => 100 + random.int(350));

/** The turns of the default run's episodes. */
export const play = { rows: 128, turns: 20, prompt: 43, new: 6, seen: 11 } as const;

/** Such turns of the tiny model; every fifth answer is read back changed, as can happen to text. In seconds. */
export async function rollOut(engine: Engine): Promise<number> {
  let prompts = Array.from({ length: play.rows }, () => randomIds(play.prompt, tiny));
  const begin = performance.now();
  for (let turn = 0; turn < play.turns; turn++) {
    const requests = prompts.map((prompt, row) => ({
      prompt,
      maxTokens: play.new,
      continued: true,
      seed: row,
    }));
    const samples = await engine.sample(requests);
    prompts = prompts.map((prompt, row) => {
      const { tokens } = samples[row]![0]!;
      const answer = row % 5 === 0 ? randomIds(play.new, tiny) : tokens;
      return [...prompt, ...answer, ...randomIds(play.seen, tiny)];
    });
  }
  return (performance.now() - begin) / 1000;
}
