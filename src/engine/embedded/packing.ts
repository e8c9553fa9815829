/**
 * Divides sequences of different lengths into micro-batches: rows of similar length that are computed together.
 *
 * Every micro-batch has a length of its own, and its rows are padded to it at their end, where causality alone hides
 * the padding. Sorted by length, neighbours differ little, so little is padded; and no row holds two sequences,
 * so no score between them is ever computed. How many rows a micro-batch takes is chosen by estimated cost.
 */

/** Rows computed together, one sequence each, padded to one length. */
export interface MicroBatch {
  readonly length: number;
  /** Which sequences, the longest first. */
  readonly sequences: readonly number[];
}

export interface PackingOptions {
  /** How many tokens are computed at a time, if one row is not longer. */
  readonly tokensPerMicroBatch: number;
  /** Cost of one more token of row length, in units of the cost of a token without attention. */
  readonly attentionCost: number;
  /** Cost of a micro-batch that has no tokens, in the same units. */
  readonly microBatchCost: number;
  /** Among how many replicas the micro-batches are shared. Default 1. */
  readonly replicas?: number;
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

/** Shares of the largest micro-batch to try: smaller micro-batches can be dealt out to the replicas more evenly. */
const SIZE_SHARES = [1, 3 / 4, 1 / 2, 1 / 3, 1 / 4];

/** The micro-batches of each replica; every sequence that is not empty appears exactly once. */
export function packSequences(
  lengths: readonly number[],
  options: PackingOptions,
): readonly (readonly MicroBatch[])[] {
  const order = lengths
    .flatMap((length, i) => (length > 0 ? [i] : []))
    .sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const replicas = options.replicas ?? 1;
  const total = order.reduce((sum, sequence) => sum + divisible(lengths[sequence]!), 0);
  const most = Math.min(options.tokensPerMicroBatch, Math.ceil(total / replicas));
  const tried = (replicas === 1 ? [1] : SIZE_SHARES).map((share) =>
    dealOut(cutMicroBatches(order, lengths, options, most * share), replicas, options),
  );
  return tried.reduce((best, next) => (next.longest < best.longest ? next : best)).shares;
}

/** Share of the computed tokens that are padding. */
export function wastedShare(
  lengths: readonly number[],
  shares: readonly (readonly MicroBatch[])[],
): number {
  const computed = shares
    .flat()
    .reduce((sum, { length, sequences }) => sum + length * sequences.length, 0);
  return 1 - lengths.reduce((sum, length) => sum + length, 0) / computed;
}

function costOf(length: number, rows: number, options: PackingOptions): number {
  const blocks = attentionBlocks(length);
  const seen = (length * (blocks + 1)) / (2 * blocks);
  return options.microBatchCost + rows * length * (1 + options.attentionCost * seen);
}

/** The cheapest division of sorted sequences into micro-batches of at most so many tokens. */
function cutMicroBatches(
  order: readonly number[],
  lengths: readonly number[],
  options: PackingOptions,
  tokens: number,
): readonly MicroBatch[] {
  // cheapest[i] is the least cost of the first i sequences, whose last micro-batch begins at from[i].
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
  const microBatches: MicroBatch[] = [];
  for (let end = order.length; end > 0; end = from[end]!) {
    const sequences = order.slice(from[end], end);
    microBatches.unshift({ length: divisible(lengths[sequences[0]!]!), sequences });
  }
  return microBatches;
}

/** Deals micro-batches out, the costliest first, each to the replica that has least to do. */
function dealOut(microBatches: readonly MicroBatch[], replicas: number, options: PackingOptions) {
  const shares = Array.from({ length: replicas }, (): MicroBatch[] => []);
  const busy = new Float64Array(replicas);
  const costed = microBatches
    .map((microBatch, i) => ({
      microBatch,
      i,
      cost: costOf(microBatch.length, microBatch.sequences.length, options),
    }))
    .sort((a, b) => b.cost - a.cost || a.i - b.i);
  for (const { microBatch, cost } of costed) {
    const replica = busy.indexOf(Math.min(...busy));
    shares[replica]!.push(microBatch);
    busy[replica]! += cost;
  }
  return { shares, longest: Math.max(...busy) };
}
