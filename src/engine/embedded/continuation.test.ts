import { afterAll, beforeAll, expect, it } from "vitest";
import { createRandom } from "../../random.js";
import type { Engine, SampleRequest } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { createEmbeddedEngine } from "./embedded-engine.js";
import { createMemory } from "./memory.js";

const config: ModelConfig = {
  vocabularySize: 40,
  hiddenSize: 32,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headSize: 8,
  mlpSize: 48,
  maxContext: 256,
  ropeTheta: 10_000,
  normEps: 1e-6,
  tiedEmbeddings: true,
  qkvBias: true,
};

let engine: Engine;
beforeAll(async () => {
  engine = await createEmbeddedEngine({ model: { config }, seed: 3, threads: 1 });
});
afterAll(() => engine.dispose());

const random = createRandom(1);
const draw = (count: number) => Array.from({ length: count }, () => random.int(40));

it("goes on from what was read before, with the results of reading everything again", async () => {
  let prompts = Array.from({ length: 7 }, (_, row) => draw(15 + row));
  for (let turn = 0; turn < 4; turn++) {
    const requests = (continued: boolean): SampleRequest[] =>
      prompts.map((prompt, row) => ({
        prompt,
        continued,
        maxTokens: 5,
        temperature: 0.9,
        stop: [[7], [8]],
        seed: 100 * turn + row,
      }));
    // Asked without the hint first, so that nothing is remembered for it.
    const plain = (await engine.sample(requests(false))).map(([sample]) => sample!);
    const continued = (await engine.sample(requests(true))).map(([sample]) => sample!);
    continued.forEach((sample, row) => {
      expect(sample.tokens).toEqual(plain[row]!.tokens);
      sample.logprobs.forEach((value, i) => {
        expect(value).toBeCloseTo(plain[row]!.logprobs[i]!, 5);
      });
    });
    prompts = prompts.map((prompt, row) => [
      ...prompt,
      ...plain[row]!.tokens,
      ...draw(1 + random.int(6)),
    ]);
  }
});

it("forgets when the weights change", async () => {
  const prompt = draw(20);
  const ask = async (ids: number[], continued: boolean) => {
    const request = { prompt: ids, continued, maxTokens: 3, temperature: 0, seed: 0 };
    return (await engine.sample([request]))[0]![0]!;
  };
  const first = await ask(prompt, true);
  const ids = [...prompt, ...first.tokens, 5, 6];
  const weight = new Float32Array(ids.length).fill(1);
  const loss = { op: "mul", x: { op: "input", name: "weight" }, y: { op: "logprob" } } as const;
  await engine.forwardBackward([{ ids, inputs: { weight } }], { loss, metrics: {} });
  await engine.optimStep({ learningRate: 0.05 });
  expect((await ask(ids, true)).logprobs).toEqual((await ask(ids, false)).logprobs);
});

it("remembers the longest beginning, hands it over once, and keeps to its size", () => {
  const memory = createMemory();
  const row = (ids: number[], floats = 1) => ({
    ids,
    cache: { tokens: ids.length, keys: [new Float32Array(floats)], values: [] },
  });
  memory.remember(row([1, 2]));
  expect(memory.recall([1, 2, 3])).toBeUndefined();
  const long = Array.from({ length: 30 }, (_, i) => i);
  memory.remember(row(long));
  memory.remember(row([...long, 1]));
  expect(memory.recall(long)).toBeUndefined();
  expect(memory.recall([...long, 1, 2])?.ids).toHaveLength(31);
  expect(memory.recall([...long, 1, 2])?.ids).toHaveLength(30);
  for (let i = 0; i < 5; i++) memory.remember(row([i, ...long], 2 ** 25));
  expect([0, 1, 2, 3, 4].map((i) => memory.recall([i, ...long, 1]) !== undefined)).toEqual([
    false,
    true,
    true,
    true,
    true,
  ]);
});
