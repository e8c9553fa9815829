/** Our own model as a policy: an engine with a tokenizer. */
import { askEngine } from "../../engine/ask.js";
import { type ActingEngine, EngineError, type SamplingOptions } from "../../engine/engine.js";
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  responseEndIds,
  stepPrompt,
} from "../../text/encode.js";
import type { PromptStyle } from "../../text/prompt.js";
import type { Tokenizer } from "../../text/tokenizer.js";
import type { Policy, Reply } from "../policy.js";

/** The model, its prompt format and tokenizer, and its sampling. */
export interface EnginePolicyOptions {
  readonly engine: ActingEngine;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  readonly sampling: Omit<SamplingOptions, "stop">;
  /** Episodes that advance in lock-step (default: all of them). */
  readonly batch?: number;
  readonly name?: string;
}

/** Samples every response from the engine; the sampled tokens are recorded as they are. */
export function enginePolicy(options: EnginePolicyOptions): Policy {
  const { engine, tokenizer, style, sampling } = options;
  const { maxContext, vocabularySize } = engine.capabilities;
  if (tokenizer.vocabularySize > vocabularySize) {
    throw new EngineError(
      `the tokenizer has ${tokenizer.vocabularySize} tokens and the model ${vocabularySize}: they do not belong together`,
    );
  }
  const continued = style.continuing;
  const stop = responseEndIds(tokenizer, style).map((id) => [id]);
  return {
    name: options.name ?? "engine",
    batch: options.batch ?? Number.POSITIVE_INFINITY,
    async act(situations) {
      const encoded = situations.map((situation) =>
        stepPrompt(
          tokenizer,
          style,
          () => situation.prompt,
          situation.steps.at(-1),
          situation.tools,
        ),
      );
      const prompts = encoded.map(({ sequence }) => sequence);
      const fits = prompts.map(({ ids }) => ids.length + sampling.maxTokens <= maxContext);
      const requests = prompts.flatMap((prompt, i) =>
        fits[i]
          ? [{ prompt: prompt.ids, stop, seed: situations[i]!.seed, continued, ...sampling }]
          : [],
      );
      const samples = (await askEngine(() => engine.sample(requests))).values();
      return prompts.map((prompt, i): Reply => {
        if (!fits[i]) return { response: "", overflow: true };
        const sample = samples.next().value![0]!;
        const response = decodeResponse(tokenizer, style, sample.tokens);
        const { pieces } = encoded[i]!;
        return {
          response,
          ...(sample.stopReason === "length" && { cut: true }),
          ...(pieces !== undefined && { prompt: pieces }),
          encode(observation, done) {
            const { temperature } = sampling;
            const answered = appendResponse(prompt, { ...sample, ids: sample.tokens, temperature });
            const turn = { response, tools: situations[i]!.tools };
            return appendObservation(answered, tokenizer, style, observation, done, turn);
          },
        };
      });
    },
  };
}
