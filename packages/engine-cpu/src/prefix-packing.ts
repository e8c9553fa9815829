/**
 * Micro-batches of sequences that begin alike, as the answers of a group do: the prefix that they
 * share is computed once, forwards and backwards. A suffix sees the prefix and itself
 * (`prefix-attention.ts`).
 */
import type { TargetSequence } from "@pawl/core/engine/engine.js";
import { countTargets, lengthToLastTarget } from "./packed-arrays.js";
import { type MicroBatch, type PackingOptions, packSequences } from "./packing.js";

/** Sequences with a common prefix of that many tokens; one alone has none. */
interface Cluster {
  readonly sequences: readonly number[];
  readonly prefix: number;
  /** The longest suffix. */
  readonly suffix: number;
}

interface Options extends Omit<PackingOptions, "replicas" | "targets"> {
  readonly mostTargets: number;
}

/** The micro-batches of some sequences; every one that has a target appears exactly once. */
export function packPrefixes(
  sequences: readonly TargetSequence[],
  { mostTargets, ...options }: Options,
): readonly MicroBatch[] {
  const lengths = sequences.map(lengthToLastTarget);
  const targets = { of: sequences.map(countTargets), most: mostTargets };
  const given = { ...options, targets };
  const clusters = cutClusters(sequences, lengths, given);
  const alone = new Set(
    clusters.flatMap((cluster) => (cluster.sequences.length === 1 ? cluster.sequences : [])),
  );
  const [rest = []] = packSequences(
    lengths.map((length, i) => (alone.has(i) ? length : 0)),
    given,
  );
  return [...joinClusters(clusters, given), ...rest.map((one) => halved(one, lengths))];
}

/** Rows of one sequence, whose first half counts as the prefix, so that one graph serves all rows. */
function halved({ length, sequences }: MicroBatch, lengths: readonly number[]): MicroBatch {
  const prefix = Math.max(1, Math.floor(length / 2));
  const prefixes = sequences.map((i) => Math.min(prefix, lengths[i]! - 1));
  const suffix = Math.max(...sequences.map((i, row) => lengths[i]! - prefixes[row]!));
  return { length: prefix + suffix, sequences, shared: { prefixes, prefix, suffix, each: 1 } };
}

type Given = PackingOptions & { readonly targets: NonNullable<PackingOptions["targets"]> };

/** Divides the sequences, sorted by their prompts, into clusters: the cheapest division. */
function cutClusters(
  sequences: readonly TargetSequence[],
  lengths: readonly number[],
  { tokensPerMicroBatch, attentionCost, microBatchCost, targets }: Given,
): readonly Cluster[] {
  const order = sortByPrompt(sequences, lengths);
  const common = order.map((sequence, at) =>
    at === 0
      ? 0
      : commonPrefix(sequences[order[at - 1]!]!.ids, sequences[sequence]!.ids, lengths[sequence]!),
  );
  const cheapest = new Float64Array(order.length + 1).fill(Number.POSITIVE_INFINITY);
  const ends: (Cluster | undefined)[] = new Array(order.length + 1).fill(undefined);
  cheapest[0] = 0;
  for (let begin = 0; begin < order.length; begin++) {
    let longest = 0;
    let prefix = Number.POSITIVE_INFINITY;
    let count = 0;
    for (let end = begin + 1; end <= order.length; end++) {
      const sequence = order[end - 1]!;
      const rows = end - begin;
      const length = lengths[sequence]!;
      longest = Math.max(longest, length);
      count += targets.of[sequence]!;
      let cost = length * (1 + (attentionCost * length) / 2);
      if (rows > 1) {
        // Every sequence has a suffix of at least one token.
        prefix = Math.min(prefix, common[end - 1]!, length - 1, lengths[order[begin]!]! - 1);
        const suffix = longest - prefix;
        const computed = prefix + rows * suffix;
        if (prefix === 0 || computed > tokensPerMicroBatch || count > targets.most) break;
        const seen = prefix * prefix + rows * suffix * longest;
        cost = microBatchCost + computed + attentionCost * seen;
      }
      if (cheapest[begin]! + cost >= cheapest[end]!) continue;
      cheapest[end] = cheapest[begin]! + cost;
      const shared = rows > 1 ? prefix : 0;
      ends[end] = {
        sequences: order.slice(begin, end),
        prefix: shared,
        suffix: longest - shared,
      };
    }
  }
  const clusters: Cluster[] = [];
  for (let end = order.length; end > 0; end -= clusters[0]!.sequences.length)
    clusters.unshift(ends[end]!);
  return clusters;
}

/** Joins clusters of equally many sequences, as long as they fit. */
function joinClusters(
  clusters: readonly Cluster[],
  { tokensPerMicroBatch, targets }: Given,
): readonly MicroBatch[] {
  const shared = clusters
    .filter(({ sequences }) => sequences.length > 1)
    .sort(
      (a, b) =>
        b.sequences.length - a.sequences.length || b.suffix - a.suffix || b.prefix - a.prefix,
    );
  const joined: Cluster[][] = [];
  for (const cluster of shared) {
    const together = [...(joined.at(-1) ?? []), cluster];
    const { length, shared } = microBatchOf(together);
    const count = together.flatMap(({ sequences }) => sequences);
    const fits =
      together[0]!.sequences.length === cluster.sequences.length &&
      length * shared.prefixes.length <= tokensPerMicroBatch &&
      count.reduce((sum, i) => sum + targets.of[i]!, 0) <= targets.most;
    if (fits && joined.length > 0) joined[joined.length - 1] = together;
    else joined.push([cluster]);
  }
  return joined.map(microBatchOf);
}

function microBatchOf(clusters: readonly Cluster[]) {
  const prefixes = clusters.map(({ prefix }) => prefix);
  const prefix = Math.max(...prefixes);
  const suffix = Math.max(...clusters.map(({ suffix }) => suffix));
  const each = clusters[0]!.sequences.length;
  return {
    length: prefix + each * suffix,
    sequences: clusters.flatMap(({ sequences }) => sequences),
    shared: { prefixes, prefix, suffix, each },
  };
}

/** Sequences with a target: those with the same tokens before it lie together, long ones first. */
function sortByPrompt(
  sequences: readonly TargetSequence[],
  lengths: readonly number[],
): readonly number[] {
  const promptOf = ({ ids, targets }: TargetSequence) => {
    const first =
      targets === undefined ? 1 : Array.from(targets).findIndex((one, i) => i > 0 && one !== 0);
    return Array.from({ length: first }, (_, i) => ids[i]!);
  };
  const prompts = sequences.map((sequence, i) => (lengths[i] === 0 ? [] : promptOf(sequence)));
  return prompts
    .flatMap((_, i) => (lengths[i]! > 0 ? [i] : []))
    .sort((a, b) => compare(prompts[a]!, prompts[b]!) || lengths[b]! - lengths[a]! || a - b);
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = commonPrefix(a, b, a.length);
  return at === a.length || at === b.length ? a.length - b.length : a[at]! - b[at]!;
}

/** How many tokens both begin with, at most `most`. */
function commonPrefix(a: ArrayLike<number>, b: ArrayLike<number>, most: number): number {
  const end = Math.min(a.length, b.length, most);
  let at = 0;
  while (at < end && a[at] === b[at]) at += 1;
  return at;
}
