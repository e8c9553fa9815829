/** A row of a batch: one sample of a request, as it grows by a token each decode step. */

import { stateAfter, type TokenMasks } from "@pawl/core/constraint/token-masks.js";
import type { Sample, SampleRequest } from "@pawl/core/engine/engine.js";
import { createRandom, mixSeed, type Random } from "@pawl/core/random.js";
import { chooseToken } from "./choose.js";
import { type Distribution, inverseTemperature } from "./prefill.js";
import { type Feed, flags } from "./sessions.js";

/** A sample in progress. */
export interface BatchRow {
  readonly request: SampleRequest;
  readonly random: Random;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly sampledLogprobs: number[];
  /** What it is held to, and how far it has come. */
  readonly masks: TokenMasks | undefined;
  state: number;
  stopReason: Sample["stopReason"] | undefined;
}

/** A row without tokens yet: sample number `index` of its request. */
export function startRow(request: SampleRequest, index: number, masks?: TokenMasks): BatchRow {
  const { prompt, begun = 0 } = request;
  return {
    request,
    random: createRandom(mixSeed(request.seed, index)),
    tokens: [],
    logprobs: [],
    sampledLogprobs: [],
    masks,
    state:
      masks === undefined ? 0 : stateAfter(masks, Array.from(prompt).slice(prompt.length - begun)),
    stopReason: undefined,
  };
}

/** The result of a row that has stopped. */
export function toSample(row: BatchRow): Sample {
  const { tokens, logprobs, sampledLogprobs } = row;
  return { tokens, logprobs, sampledLogprobs, stopReason: row.stopReason! };
}

/** The position of a row's newest token. */
export function positionOf(row: BatchRow): number {
  return row.request.prompt.length + row.tokens.length - 1;
}

/**
 * Draws a row's next token from entry `at` of the distribution, and checks whether the row stops.
 */
export function drawToken(
  row: BatchRow,
  next: Distribution,
  at: number,
  vocabularySize: number,
): void {
  const probabilities = next.probabilities.subarray(at * vocabularySize, (at + 1) * vocabularySize);
  const { token, sampledLogprob } = chooseToken(probabilities, row.request, row.random);
  const temperature = 1 / inverseTemperature(row.request);
  const logit = temperature * (Math.log(probabilities[token]!) + next.logSum[at]!);
  row.tokens.push(token);
  row.logprobs.push(logit - next.plainLogSum[at]!);
  row.sampledLogprobs.push(sampledLogprob);
  if (row.masks !== undefined) row.state = row.masks.next(row.state, token);
  if (row.request.stop?.some((stop) => endsWith(row.tokens, stop))) row.stopReason = "stop";
  else if (row.tokens.length >= row.request.maxTokens) row.stopReason = "length";
}

/** The tokens that rows may take next, as a graph takes them: all of them for rows held to nothing. */
export function allowedFeed(
  rows: readonly (Pick<BatchRow, "masks" | "state" | "stopReason"> | undefined)[],
  vocabularySize: number,
): Feed {
  const allowed = new Uint8Array(rows.length * vocabularySize);
  rows.forEach((row, at) => {
    const begin = at * vocabularySize;
    if (row?.masks === undefined || row.stopReason !== undefined)
      allowed.fill(1, begin, begin + vocabularySize);
    else allowed.set(row.masks.allowed(row.state), begin);
  });
  return flags(allowed, [rows.length, vocabularySize]);
}

function endsWith(tokens: readonly number[], stop: readonly number[]): boolean {
  const begin = tokens.length - stop.length;
  return begin >= 0 && stop.every((token, i) => tokens[begin + i] === token);
}
