/**
 * What masks cost: tokens per second with answers held to a schema, and without.
 *
 *   npm run bench -- masks MODEL [ROWS]
 *
 *   plain_rate      tokens per second of ROWS answers (default: 8) of 64 tokens
 *   masked_rate     the same where each answer is an object with a long text
 *   counted_rate    the same where the text has a least length, so that every place has its own mask
 *   mask_ratio, counted_ratio   those rates ÷ the first
 *   first_seconds   the schema's automaton, its masks and the graphs, in the first call
 */
import type { SampleRequest } from "@pawl/core/engine/engine.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import { engineOptions } from "@pawl/training/engines.js";
import { openModel, savedStartOf } from "@pawl/training/open-model.js";

const object = (text: object): Constraint => ({
  json: { type: "object", properties: { text }, required: ["text"], additionalProperties: false },
});

/** Measures sampling with masks and without. */
export async function main([start, rows = "8"]: readonly string[]) {
  if (start === undefined) throw new Error("name a model");
  const engine = engineOptions.parse({});
  const open = await openModel({ start: await savedStartOf({ model: { start }, engine }), engine });
  const { tokenizer } = open;
  const text = "Tell a long story of a fox who lives in a forest, as JSON.";
  const message = { role: "user", content: text } as const;
  const prompt = tokenizer.encode(tokenizer.chat([message], { addGenerationPrompt: true }));
  const rate = async (constraint?: Constraint) => {
    const request: Omit<SampleRequest, "seed"> = {
      prompt: [...prompt],
      maxTokens: 64,
      ...(constraint && { constraint }),
    };
    const ask = async (first: number) => {
      const started = performance.now();
      const requests = Array.from({ length: Number(rows) }, (_, i) => ({
        ...request,
        seed: first + i,
      }));
      const samples = (await open.engine.sample(requests)).flat();
      const seconds = (performance.now() - started) / 1000;
      return { seconds, tokens: samples.reduce((sum, one) => sum + one.tokens.length, 0) };
    };
    const { seconds: first } = await ask(0);
    const runs = [await ask(100), await ask(200), await ask(300)];
    const tokens = runs.reduce((sum, one) => sum + one.tokens, 0);
    return { first, rate: tokens / runs.reduce((sum, one) => sum + one.seconds, 0) };
  };
  const plain = await rate();
  const masked = await rate(object({ type: "string", pattern: "^[^\\\\]*$" }));
  const counted = await rate(object({ type: "string", minLength: 1500 }));
  await open.engine.dispose();
  return {
    plain_rate: plain.rate,
    masked_rate: masked.rate,
    counted_rate: counted.rate,
    mask_ratio: masked.rate / plain.rate,
    counted_ratio: counted.rate / plain.rate,
    first_seconds: masked.first,
  };
}
