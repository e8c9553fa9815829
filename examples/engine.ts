/** The embedded engine: a small model learns one sentence by heart, and says it. */
import { buildTokenizer, createEmbeddedEngine, expression } from "pawl";

const sentence = "The pawl lets the wheel turn one way only.";
const tokenizer = buildTokenizer([sentence]);
const ids = [...tokenizer.encode(sentence), tokenizer.endId!];
const engine = await createEmbeddedEngine({
  model: { preset: "tiny", vocabularySize: tokenizer.vocabularySize, maxContext: 64 },
  seed: 1,
});
console.log(`${engine.capabilities.parameters} parameters`);

const { input, logprob, mul, neg } = expression;
const objective = { loss: mul(input("weight"), neg(logprob)), metrics: {} };
const weight = new Float32Array(ids.length).fill(1 / (ids.length - 1));
for (let step = 0; step < 40; step++) {
  const { loss } = await engine.forwardBackward([{ ids, inputs: { weight } }], objective);
  await engine.optimStep({ learningRate: 3e-3 });
  if (step % 10 === 0) console.log(`step ${step}: loss ${loss.toFixed(3)}`);
}

const prompt = ids.slice(0, 2);
const stop = [[tokenizer.endId!]];
const [samples] = await engine.sample([{ prompt, stop, maxTokens: 30, temperature: 0, seed: 0 }]);
console.log(tokenizer.decode([...prompt, ...samples![0]!.tokens]));
await engine.dispose();
