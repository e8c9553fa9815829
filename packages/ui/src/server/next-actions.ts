/** What an agent would do next, and what it expects then. */
import type { Environment } from "@pawl/core/envs/env.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  encodePrompt,
  encodeResponse,
  responseEndIds,
} from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import type { PromptView } from "@pawl/core/text/prompt-style.js";
import type { NextAction, NextActions } from "./api.js";
import { beforeObservation, foresee } from "./foresee.js";
import type { DeskModel } from "./model-desk.js";

/** More admissible actions than this are not scored one by one: the agent is sampled instead. */
const MOST_SCORED = 64;
/** Samples where actions cannot be listed. */
const SAMPLES = 16;
/** Actions whose outcome is predicted. */
const PREDICTED = 3;

/** The probabilities of the next actions, and the expected outcome of the likeliest. */
export async function nextActions(
  model: DeskModel,
  environment: Environment,
  view: PromptView,
): Promise<NextActions> {
  const { acting, engine, tokenizer } = model;
  if (acting === undefined)
    throw new HttpError(
      422,
      `${model.name} is a world model and does not act: choose a run of pawl train`,
    );
  const style = promptStyle(environment.prompt, acting.prompt, tokenizer);
  const read = encodePrompt(tokenizer, style, style.render(view));
  const prompt = read.ids;
  const { maxContext } = engine.capabilities;
  if (prompt.length + 1 >= maxContext)
    throw new HttpError(
      422,
      `the prompt has ${prompt.length} tokens, and ${model.name} reads ${maxContext}`,
    );
  const listed = view.admissible;
  const scored = listed !== undefined && listed.length > 0 && listed.length <= MOST_SCORED;
  const actions = scored ? await score() : await sample();
  const likely = actions.slice(0, PREDICTED);
  const predictions = await foresee(
    model,
    likely.map(({ action }) => askedAfter(action)),
  );
  return {
    how: scored ? "scored" : "sampled",
    actions: actions.map((one, i) => {
      const prediction = predictions[i];
      return prediction === undefined
        ? one
        : { ...one, predicted: prediction.observation, predictedSuccess: prediction.success };
    }),
  };

  /** What the agent reads, this action, and what stands before the world's answer to it. */
  function askedAfter(action: string): readonly number[] {
    const { tools } = view;
    const response = style.format(action);
    const acted = appendResponse(read, { ids: encodeResponse(tokenizer, style, response) });
    // Any text will do: it is cut off again.
    const seen = appendObservation(acted, tokenizer, style, "?", false, { response, tools });
    return beforeObservation(seen)!;
  }

  /** The probability of each listed action, written as the agent would. */
  async function score(): Promise<NextAction[]> {
    const answers = listed!.map((action) => encodeResponse(tokenizer, style, style.format(action)));
    const fitting = answers.flatMap((ids, i) =>
      prompt.length + ids.length <= maxContext ? [{ ids, action: listed![i]! }] : [],
    );
    const results = await engine.forward(
      fitting.map(({ ids }) => ({
        ids: [...prompt, ...ids],
        targets: Uint8Array.from({ length: prompt.length + ids.length }, (_, i) =>
          i >= prompt.length ? 1 : 0,
        ),
      })),
    );
    return fitting
      .map(({ action }, i) => {
        const logprobs = results[i]!.logprobs.subarray(prompt.length);
        return { action, p: Math.exp(logprobs.reduce((sum, logprob) => sum + logprob, 0)) };
      })
      .sort((a, b) => b.p - a.p);
  }

  /** How often the agent does what, if it is asked a few times. */
  async function sample(): Promise<NextAction[]> {
    const maxTokens = Math.min(acting!.maxTokens, maxContext - prompt.length);
    const stop = responseEndIds(tokenizer, style).map((id) => [id]);
    const [samples] = await engine.sample([{ prompt, maxTokens, count: SAMPLES, stop, seed: 0 }]);
    const counts = new Map<string, number>();
    for (const { tokens } of samples!) {
      const { action } = style.parse(decodeResponse(tokenizer, style, tokens), view.tools);
      counts.set(action, (counts.get(action) ?? 0) + 1);
    }
    return [...counts]
      .map(([action, count]) => ({ action, p: count / SAMPLES }))
      .sort((a, b) => b.p - a.p);
  }
}
