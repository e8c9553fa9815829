/**
 * Packs sequences of different lengths into rows, several to a row, so that little is spent on padding.
 *
 * Attention is block-diagonal within a row, so a row's sequences do not see each other. Longer rows pack
 * better but pay for attention scores between sequences that are then masked: the row length is chosen by
 * estimated cost. Sequences of very different lengths go into separate batches.
 */

/** Where a sequence lies: which row, and at which token of it. */
export interface Placement {
  readonly sequence: number;
  readonly row: number;
  readonly start: number;
}

/** Into how many blocks attention divides rows of a length: the later keys of most blocks are not computed. */
export function attentionBlocks(length: number): number {
  if (length < 128) return 1;
  return length < 256 ? 2 : 4;
}

/** The length with a little padding, so that it divides into its blocks. */
function divisible(length: number): number {
  const blocks = attentionBlocks(length);
  return Math.ceil(length / blocks) * blocks;
}

/** Rows of one length, cut into equal steps of `rowsPerStep` rows; the last rows may be empty. */
export interface PackedBatch {
  readonly length: number;
  readonly rowsPerStep: number;
  readonly steps: number;
  readonly placements: readonly Placement[];
}

export interface PackingOptions {
  /** How many tokens are computed at a time, if one row is not longer. */
  readonly tokensPerStep: number;
  /** Cost of one more token of row length, in units of the cost of a token without attention. */
  readonly attentionCost: number;
  /** Among how many lanes the steps are shared. Default 1. */
  readonly lanes?: number;
}

/** Row lengths to try, as multiples of the longest sequence. */
const STRETCHES = Array.from({ length: 33 }, (_, i) => 1 + i / 8);
/** Rows longer than the longest sequence need not be longer than this. */
const LONG_ROW = 512;
/** Sequences shorter than the longest by this factor get rows of their own, if they fill a few steps. */
const LENGTH_CLASS = 4;
const STEPS_WORTH_A_BATCH = 4;

/** Places sequences of the given lengths; every sequence that is not empty appears exactly once. */
export function packSequences(
  lengths: readonly number[],
  options: PackingOptions,
): readonly PackedBatch[] {
  const order = lengths
    .flatMap((length, i) => (length > 0 ? [i] : []))
    .sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  const batches: PackedBatch[] = [];
  for (let begin = 0; begin < order.length; ) {
    const end = endOfClass(order, lengths, begin, options.tokensPerStep * STEPS_WORTH_A_BATCH);
    batches.push(packClass(order.slice(begin, end), lengths, options));
    begin = end;
  }
  return batches;
}

/** Share of the computed tokens that are padding. */
export function wastedShare(lengths: readonly number[], batches: readonly PackedBatch[]): number {
  const computed = batches.reduce(
    (sum, batch) => sum + batch.steps * batch.rowsPerStep * batch.length,
    0,
  );
  return 1 - lengths.reduce((sum, length) => sum + length, 0) / computed;
}

function endOfClass(
  order: readonly number[],
  lengths: readonly number[],
  begin: number,
  worthwhile: number,
): number {
  const limit = lengths[order[begin]!]! / LENGTH_CLASS;
  const split = order.findIndex((sequence, i) => i > begin && lengths[sequence]! < limit);
  if (split === -1) return order.length;
  const rest = order.slice(split).reduce((sum, sequence) => sum + lengths[sequence]!, 0);
  return rest < worthwhile ? order.length : split;
}

function packClass(
  order: readonly number[],
  lengths: readonly number[],
  options: PackingOptions,
): PackedBatch {
  const longest = lengths[order[0]!]!;
  const total = order.reduce((sum, sequence) => sum + lengths[sequence]!, 0);
  const candidates = STRETCHES.map((stretch) => divisible(Math.ceil(longest * stretch))).filter(
    (length, i) => i === 0 || (length <= LONG_ROW && length <= total),
  );
  const tried = candidates.map((length) => {
    const batch = fillRows(order, lengths, length, options);
    const lanes = options.lanes ?? 1;
    // Counted as if every lane had as much to do as the busiest one.
    const tokens = Math.ceil(batch.steps / lanes) * lanes * batch.rowsPerStep * length;
    const blocks = attentionBlocks(length);
    const seen = (length * (blocks + 1)) / (2 * blocks);
    return { batch, cost: tokens * (1 + options.attentionCost * seen) };
  });
  return tried.reduce((best, next) => (next.cost < best.cost ? next : best)).batch;
}

/** Best fit, longest first: each sequence goes into the fullest row that still has room. */
function fillRows(
  order: readonly number[],
  lengths: readonly number[],
  length: number,
  { tokensPerStep, lanes = 1 }: PackingOptions,
): PackedBatch {
  const rowsByRoom: number[][] = Array.from({ length: length + 1 }, () => []);
  const placements: Placement[] = [];
  let rows = 0;
  for (const sequence of order) {
    const size = lengths[sequence]!;
    let room = size;
    while (room <= length && rowsByRoom[room]!.length === 0) room += 1;
    const row = room <= length ? rowsByRoom[room]!.pop()! : rows++;
    const left = Math.min(room, length);
    placements.push({ sequence, row, start: length - left });
    rowsByRoom[left - size]!.push(row);
  }
  const limit = Math.max(1, Math.floor(tokensPerStep / length));
  return { length, placements, ...cutSteps(rows, limit, lanes) };
}

/** The largest steps, up to the limit, that leave the fewest empty rows in equal shares of the lanes. */
function cutSteps(
  rows: number,
  limit: number,
  lanes: number,
): { steps: number; rowsPerStep: number } {
  if (rows <= lanes) return { steps: rows, rowsPerStep: 1 };
  const share = Math.ceil(rows / lanes);
  let best = { steps: lanes * share, rowsPerStep: 1 };
  for (let most = Math.ceil(limit / 2); most <= limit; most++) {
    const stepsEach = Math.ceil(share / most);
    const rowsPerStep = Math.ceil(share / stepsEach);
    const steps = lanes * stepsEach;
    const worse = steps * rowsPerStep - best.steps * best.rowsPerStep;
    if (worse < 0 || (worse === 0 && steps <= best.steps) || best.rowsPerStep * 2 < rowsPerStep)
      best = { steps, rowsPerStep };
  }
  return best;
}
