/**
 * Slices: an answer that is sampled a few tokens at a time, so that others can join between two
 * slices. Slices continue in the engine's prefix cache, so one costs hardly more than its decode
 * steps. Where they begin depends on the request alone: it gets the same tokens in any company.
 */
import { EngineError, type Sample, type SampleRequest } from "../engine/engine.js";
import { mixSeed } from "../random.js";

/** A request and what was sampled for it so far. */
export interface Draft {
  readonly request: SampleRequest;
  readonly tokens: number[];
  readonly logprobs: number[];
  /** Undefined once a slice came without them. */
  sampledLogprobs: number[] | undefined;
  slices: number;
}

/** Nothing sampled yet. */
export function draftOf(request: SampleRequest): Draft {
  return { request, tokens: [], logprobs: [], sampledLogprobs: [], slices: 0 };
}

/** Refuses what the engine would only notice in a late slice. */
export function refuseOverflow({ prompt, maxTokens }: SampleRequest, maxContext: number): void {
  if (prompt.length + maxTokens > maxContext)
    throw new EngineError(
      `a prompt of ${prompt.length} tokens and ${maxTokens} new ones exceed the model's context of ${maxContext}; shorten the prompt or lower maxTokens`,
    );
}

/** What to ask the engine for next: at most `most` tokens that continue the draft. */
export function nextSlice({ request, tokens, slices }: Draft, most: number): SampleRequest {
  const left = request.maxTokens - tokens.length;
  if (slices === 0 && left <= most) return request;
  return {
    ...request,
    ...(slices > 0 && { prompt: [...Array.from(request.prompt), ...tokens] }),
    ...(request.constraint && { begun: (request.begun ?? 0) + tokens.length }),
    maxTokens: Math.min(left, most),
    ...(left > most && { continued: "apart" }),
    seed: slices === 0 ? request.seed : mixSeed(request.seed, "slice", slices),
  };
}

/** The request as one of many that only happen to meet in a batch. */
export function apart(request: SampleRequest): SampleRequest {
  return request.continued === true ? { ...request, continued: "apart" } : request;
}

/**
 * Adds a slice to its draft, up to a stop sequence that may have begun in an earlier one. Returns
 * the answer, if it is complete; one that fits into a slice is as the engine gave it.
 */
export function addSlice(
  draft: Draft,
  samples: readonly Sample[],
  most: number,
): readonly Sample[] | undefined {
  const { request, tokens, logprobs } = draft;
  if (request.maxTokens <= most) return samples;
  const slice = samples[0]!;
  draft.slices += 1;
  // An engine that gives no token will not give one later either.
  let stopped = slice.stopReason === "stop" || slice.tokens.length === 0;
  for (const [i, token] of slice.tokens.entries()) {
    tokens.push(token);
    logprobs.push(slice.logprobs[i]!);
    if (slice.sampledLogprobs === undefined) draft.sampledLogprobs = undefined;
    else draft.sampledLogprobs?.push(slice.sampledLogprobs[i]!);
    if (request.stop?.some((stop) => endsWith(tokens, stop)) !== true) continue;
    stopped = true;
    break;
  }
  if (!stopped && tokens.length < request.maxTokens) return undefined;
  const { sampledLogprobs } = draft;
  const stopReason = stopped ? "stop" : "length";
  return [{ tokens, logprobs, ...(sampledLogprobs && { sampledLogprobs }), stopReason }];
}

function endsWith(tokens: readonly number[], stop: readonly number[]): boolean {
  const begin = tokens.length - stop.length;
  return begin >= 0 && stop.every((token, i) => tokens[begin + i] === token);
}
