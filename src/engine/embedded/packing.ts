/**
 * Divides sequences of different lengths into steps: rows of similar length that are computed together.
 *
 * Every step has a length of its own, and its rows are padded to it at their end, where causality alone hides
 * the padding. Sorted by length, neighbours differ little, so little is padded; and no row holds two sequences,
 * so no score between them is ever computed. How many rows a step takes is chosen by estimated cost.
 */

/** Rows computed together, one sequence each, padded to one length. */
export interface Step {
  readonly length: number;
  /** Which sequences, the longest first. */
  readonly sequences: readonly number[];
}

export interface PackingOptions {
  /** How many tokens are computed at a time, if one row is not longer. */
  readonly tokensPerStep: number;
  /** Cost of one more token of row length, in units of the cost of a token without attention. */
  readonly attentionCost: number;
  /** Cost of a step that has no tokens, in the same units. */
  readonly stepCost: number;
  /** Among how many lanes the steps are shared. Default 1. */
  readonly lanes?: number;
}

/** Into how many blocks attention divides rows of a length: the later keys of most blocks are not computed. */
export function attentionBlocks(length: number): number {
  if (length < 64) return 1;
  return length < 512 ? 2 : 4;
}

/** The length with a little padding, so that it divides into its blocks. */
function divisible(length: number): number {
  const blocks = attentionBlocks(length);
  return Math.ceil(length / blocks) * blocks;
}

/** Shares of the largest step to try: smaller steps can be dealt out to the lanes more evenly. */
const STEP_SHARES = [1, 3 / 4, 1 / 2, 1 / 3, 1 / 4];

/** The steps of each lane; every sequence that is not empty appears exactly once. */
export function packSequences(
  lengths: readonly number[],
  options: PackingOptions,
): readonly (readonly Step[])[] {
  const order = lengths
    .flatMap((length, i) => (length > 0 ? [i] : []))
    .sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const lanes = options.lanes ?? 1;
  const total = order.reduce((sum, sequence) => sum + divisible(lengths[sequence]!), 0);
  const most = Math.min(options.tokensPerStep, Math.ceil(total / lanes));
  const tried = (lanes === 1 ? [1] : STEP_SHARES).map((share) =>
    dealOut(cutSteps(order, lengths, options, most * share), lanes, options),
  );
  return tried.reduce((best, next) => (next.longest < best.longest ? next : best)).shares;
}

/** Share of the computed tokens that are padding. */
export function wastedShare(
  lengths: readonly number[],
  shares: readonly (readonly Step[])[],
): number {
  const computed = shares
    .flat()
    .reduce((sum, { length, sequences }) => sum + length * sequences.length, 0);
  return 1 - lengths.reduce((sum, length) => sum + length, 0) / computed;
}

function costOf(length: number, rows: number, options: PackingOptions): number {
  const blocks = attentionBlocks(length);
  const seen = (length * (blocks + 1)) / (2 * blocks);
  return options.stepCost + rows * length * (1 + options.attentionCost * seen);
}

/** The cheapest division of sorted sequences into steps of at most so many tokens. */
function cutSteps(
  order: readonly number[],
  lengths: readonly number[],
  options: PackingOptions,
  tokens: number,
): readonly Step[] {
  // cheapest[i] is the least cost of the first i sequences, whose last step begins at from[i].
  const cheapest = new Float64Array(order.length + 1).fill(Number.POSITIVE_INFINITY);
  const from = new Int32Array(order.length + 1);
  cheapest[0] = 0;
  for (let begin = 0; begin < order.length; begin++) {
    const length = divisible(lengths[order[begin]!]!);
    const most = Math.max(1, Math.floor(tokens / length));
    for (let end = begin + 1; end <= Math.min(order.length, begin + most); end++) {
      const cost = cheapest[begin]! + costOf(length, end - begin, options);
      if (cost >= cheapest[end]!) continue;
      cheapest[end] = cost;
      from[end] = begin;
    }
  }
  const steps: Step[] = [];
  for (let end = order.length; end > 0; end = from[end]!) {
    const sequences = order.slice(from[end], end);
    steps.unshift({ length: divisible(lengths[sequences[0]!]!), sequences });
  }
  return steps;
}

/** Deals steps out, the costliest first, each to the lane that has least to do. */
function dealOut(steps: readonly Step[], lanes: number, options: PackingOptions) {
  const shares = Array.from({ length: lanes }, (): Step[] => []);
  const busy = new Float64Array(lanes);
  const costed = steps
    .map((step, i) => ({ step, i, cost: costOf(step.length, step.sequences.length, options) }))
    .sort((a, b) => b.cost - a.cost || a.i - b.i);
  for (const { step, cost } of costed) {
    const lane = busy.indexOf(Math.min(...busy));
    shares[lane]!.push(step);
    busy[lane]! += cost;
  }
  return { shares, longest: Math.max(...busy) };
}
