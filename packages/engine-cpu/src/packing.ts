/**
 * Divides sequences of different lengths into micro-batches: rows of similar length that are
 * computed together.
 *
 * Every micro-batch has its own length. Its rows are padded at the end, where causality alone hides
 * the padding. Neighbours sorted by length differ little, so there is little padding; and no row
 * holds two sequences, so no scores between sequences are computed. The number of rows in a
 * micro-batch is chosen by estimated cost.
 */

/** Rows computed together, padded to one length: one sequence each, or some that share a prefix. */
export interface MicroBatch {
  readonly length: number;
  /** The sequences in it, row by row; without shared prefixes, longest first. */
  readonly sequences: readonly number[];
  readonly shared?: SharedPrefixes;
}

/** Rows that hold a prefix, padded to one length, and then the suffixes of its sequences, padded to another. */
export interface SharedPrefixes {
  /** Tokens of each row's own prefix. */
  readonly prefixes: readonly number[];
  /** Both padded lengths. */
  readonly prefix: number;
  readonly suffix: number;
  /** Suffixes in a row. */
  readonly each: number;
}

export interface PackingOptions {
  /** How many tokens are computed at a time, unless a single row is longer. */
  readonly tokensPerMicroBatch: number;
  /** Cost of a token for each token of row length, relative to a token without attention. */
  readonly attentionCost: number;
  /** Fixed cost of a micro-batch, in the same units. */
  readonly microBatchCost: number;
  /** Number of replicas that share the micro-batches. Default 1. */
  readonly replicas?: number;
  /** Targets of each sequence, and how many a micro-batch may have. Default: any number. */
  readonly targets?: { readonly of: readonly number[]; readonly most: number };
}

/** How many blocks attention splits rows of a length into: most blocks then skip the later keys. */
export function attentionBlocks(length: number): number {
  if (length < 64) return 1;
  return length < 512 ? 2 : 4;
}

/** The length, padded so that it divides evenly into its blocks. */
function divisible(length: number): number {
  const blocks = attentionBlocks(length);
  return Math.ceil(length / blocks) * blocks;
}

/**
 * Fractions of the largest micro-batch to try: smaller micro-batches can be spread over the
 * replicas more evenly.
 */
const SIZE_SHARES = [1, 3 / 4, 1 / 2, 1 / 3, 1 / 4];

/** The micro-batches of each replica; every non-empty sequence appears exactly once. */
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

function costOf(length: number, rows: number, options: PackingOptions): number {
  const blocks = attentionBlocks(length);
  const seen = (length * (blocks + 1)) / (2 * blocks);
  return options.microBatchCost + rows * length * (1 + options.attentionCost * seen);
}

/**
 * The cheapest division of sorted sequences into micro-batches of at most the given number of
 * tokens.
 */
function cutMicroBatches(
  order: readonly number[],
  lengths: readonly number[],
  options: PackingOptions,
  tokens: number,
): readonly MicroBatch[] {
  // cheapest[i] is the lowest cost of the first i sequences, whose last micro-batch begins at
  // from[i].
  const cheapest = new Float64Array(order.length + 1).fill(Number.POSITIVE_INFINITY);
  const from = new Int32Array(order.length + 1);
  cheapest[0] = 0;
  for (let begin = 0; begin < order.length; begin++) {
    const length = divisible(lengths[order[begin]!]!);
    const most = Math.max(1, Math.floor(tokens / length));
    let targets = 0;
    for (let end = begin + 1; end <= Math.min(order.length, begin + most); end++) {
      targets += options.targets?.of[order[end - 1]!] ?? 0;
      if (end > begin + 1 && targets > (options.targets?.most ?? targets)) break;
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

/** Distributes micro-batches, most expensive first, each to the least loaded replica. */
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
