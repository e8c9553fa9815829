/** A row of a batch: one sample of a request, as it grows by a token each decode step. */

import { stateAfter, type TokenMasks } from "@pawl/core/constraint/token-masks.js";
import type { Sample, SampleRequest, SamplingOptions } from "@pawl/core/engine/engine.js";
import { createRandom, mixSeed, type Random } from "@pawl/core/random.js";
import { type Distribution, inverseTemperature } from "./prefill.js";
import { type Feed, flags } from "./sessions.js";

/** A sample in progress. */
export interface BatchRow {
  readonly request: SampleRequest;
  readonly random: Random;
  /** The end of its prompt, if that is read token by token, and how far it is. */
  readonly given: readonly number[];
  taken: number;
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly sampledLogprobs: number[];
  /** What it is held to, and how far it has come. */
  readonly masks: TokenMasks | undefined;
  state: number;
  stopReason: Sample["stopReason"] | undefined;
}

/** A row without tokens yet: sample number `index` of its request. */
export function startRow(
  request: SampleRequest,
  index: number,
  masks?: TokenMasks,
  given: readonly number[] = [],
): BatchRow {
  const { prompt, begun = 0 } = request;
  return {
    request,
    random: createRandom(mixSeed(request.seed, index)),
    given,
    taken: 0,
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
  return row.request.prompt.length - row.given.length + row.taken + row.tokens.length - 1;
}

/** A row's newest token. */
export function newestOf(row: BatchRow): number {
  return row.tokens.at(-1) ?? row.given[row.taken - 1]!;
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

// Chooses one token from a distribution: temperature has been applied already; truncation and the
// draw happen here.

/** A token and the log-probability it had under the distribution it was drawn from. */
interface Choice {
  readonly token: number;
  readonly sampledLogprob: number;
}

/** Draws a token from probabilities that sum to one. */
export function chooseToken(
  probabilities: Float32Array,
  options: SamplingOptions,
  random: Random,
): Choice {
  if (options.temperature === 0) return { token: largest(probabilities), sampledLogprob: 0 };
  const { topK = 0, topP = 1 } = options;
  const uniform = random.next();
  const whole = (topK === 0 || topK >= probabilities.length) && topP >= 1;
  return whole ? draw(probabilities, uniform) : drawCut(probabilities, topK, topP, uniform);
}

function largest(probabilities: Float32Array): number {
  let best = 0;
  for (let i = 1; i < probabilities.length; i++)
    if (probabilities[i]! > probabilities[best]!) best = i;
  return best;
}

function draw(probabilities: Float32Array, uniform: number): Choice {
  let sum = 0;
  for (let i = 0; i < probabilities.length; i++) {
    sum += probabilities[i]!;
    if (sum > uniform) return { token: i, sampledLogprob: Math.log(probabilities[i]!) };
  }
  // Rounding may leave the sum slightly below one: then it is the last possible token.
  const last = probabilities.findLastIndex((p) => p > 0);
  return { token: last, sampledLogprob: Math.log(probabilities[last]!) };
}

function drawCut(probabilities: Float32Array, topK: number, topP: number, uniform: number): Choice {
  const order = Array.from(probabilities.keys()).sort(
    (a, b) => probabilities[b]! - probabilities[a]! || a - b,
  );
  const most = topK === 0 ? order.length : Math.min(topK, order.length);
  let kept = 0;
  let mass = 0;
  // The token that reaches topP is kept, so at least one always is.
  while (kept < most && (kept === 0 || mass < topP)) mass += probabilities[order[kept++]!]!;
  let sum = 0;
  let at = 0;
  while (at < kept - 1) {
    sum += probabilities[order[at]!]!;
    if (sum > uniform * mass) break;
    at += 1;
  }
  const token = order[at]!;
  return { token, sampledLogprob: Math.log(probabilities[token]! / mass) };
}
