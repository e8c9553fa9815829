/**
 * GiGPO: GRPO over episodes, plus the same comparison among steps with the same observation (Feng
 * et al. 2025, arXiv 2505.10978).
 *
 *   G_t    = r_t + γ·G_{t+1}, minus c·fined_t if the penalty is inside              (GiGPO eq. 5)
 *   A^E_i  = GRPO of the scores s_i                                                  (GiGPO eq. 3)
 *   A^S_i  = (G_i − mean) / (std + 1e-6), or G_i − mean, over one anchor's steps   (GiGPO eq. 6, 7)
 *   A_i    = A^E_i + ω·A^S_i                                                         (GiGPO eq. 8)
 *
 * The anchor of a step is the text of the observation it acted on. A step that shares its anchor
 * with no other has A^S = 0. `norm` applies to both terms.
 */
import { z } from "zod";
import type { Episode } from "../rollout/episode.js";
import { commonSettings, GAMMA_HELP, groupEstimator } from "./estimator.js";
import { grpo } from "./grpo.js";
import { alongTime, penalties, subtractInside } from "./scores.js";
import {
  type Normalisation,
  normaliser,
  normSetting,
  perSetting,
  type StatisticsUnit,
  type StepTable,
} from "./statistics.js";

/** How steps are compared. */
export interface GigpoOptions {
  /** ω: the weight of the comparison among steps. */
  readonly stepWeight: number;
  readonly norm: Normalisation;
  /** Texts with at least this similarity share an anchor; 1: equal texts only. */
  readonly similarity: number;
  readonly per: StatisticsUnit;
}

/** The steps of one group; all tables are episodes × steps. */
export interface GigpoGroup {
  readonly scores: StepTable;
  /** The discounted return of each step, from `discountedReturns`. */
  readonly returns: StepTable;
  readonly anchors: readonly (readonly string[])[];
}

/** Advantages of one group's steps: episodes × steps. */
export function gigpo(group: GigpoGroup, options: GigpoOptions): StepTable {
  const episodeTerm = grpo(group.scores, options.per, options.norm);
  const stepTerm = stepAdvantages(group.returns, group.anchors, options);
  return episodeTerm.map((steps, e) =>
    steps.map((advantage, t) => advantage + options.stepWeight * stepTerm[e]![t]!),
  );
}

/** A^S: each step against the steps of the same group that share its anchor (GiGPO eq. 7). */
export function stepAdvantages(
  returns: StepTable,
  anchors: readonly (readonly string[])[],
  { norm, similarity }: Pick<GigpoOptions, "norm" | "similarity">,
): StepTable {
  const clusters = clusterTexts(anchors.flat(), similarity);
  const flat = returns.flat();
  const members = new Map<number, number[]>();
  clusters.forEach((cluster, i) => {
    const values = members.get(cluster);
    if (values === undefined) members.set(cluster, [flat[i]!]);
    else values.push(flat[i]!);
  });
  const normalise = new Map(
    [...members].map(([cluster, values]) => [cluster, normaliser(values, norm)]),
  );
  let i = 0;
  // The mean of one value is that value, so a singleton gets 0.
  return returns.map((steps) => steps.map((value) => normalise.get(clusters[i++]!)!(value)));
}

/** G_t = r_t + γ·G_{t+1} of one episode (GiGPO eq. 5). */
export function discountedReturns(rewards: readonly number[], gamma: number): readonly number[] {
  const returns = new Array<number>(rewards.length);
  let following = 0;
  for (let t = rewards.length - 1; t >= 0; t--) {
    following = rewards[t]! + gamma * following;
    returns[t] = following;
  }
  return returns;
}

/** The observation that each step of an episode acted on. */
function anchorsOf({ stop, steps, firstObservation }: Episode): readonly string[] {
  if (stop === "broken") return [];
  return steps.map(({ seen }, t) => seen ?? steps[t - 1]?.observation ?? firstObservation);
}

/**
 * The number of each text's cluster, counted from 0 in order of appearance. Equal texts share one.
 * Below a similarity of 1, texts are clustered greedily in order, as in the reference
 * implementation: a text joins the first cluster whose first member is similar enough, or starts a
 * new one.
 */
export function clusterTexts(texts: readonly string[], similarity: number): readonly number[] {
  const clusterOf = new Map<string, number>();
  const representatives: ComparableText[] = [];
  let count = 0;
  return texts.map((text) => {
    // Clusters only grow at the end, so an equal text joins the same cluster as before.
    let cluster = clusterOf.get(text);
    if (cluster !== undefined) return cluster;
    if (similarity < 1) {
      const candidate = comparable(text);
      cluster = representatives.findIndex((first) => isSimilar(candidate, first, similarity));
      if (cluster < 0) cluster = representatives.push(candidate) - 1;
    } else {
      cluster = count++;
    }
    clusterOf.set(text, cluster);
    return cluster;
  });
}

export const gigpoEstimator = groupEstimator(
  z.strictObject({
    name: z.literal("gigpo"),
    per: perSetting,
    ...commonSettings,
    gamma: z.number().min(0).max(1).default(0.95).describe(GAMMA_HELP),
    stepWeight: z.number().min(0).default(1).describe("ω: weight of the step-level advantage"),
    norm: normSetting,
    similarity: z
      .number()
      .gt(0)
      .max(1)
      .default(1)
      .describe(
        "observations at least this similar share an anchor state (1: identical ones only)",
      ),
  }),
  (scores, options, { group, episodes }) => {
    const fines = penalties(episodes, options.penalty);
    const returns = episodes.map((episode, e) => {
      const discounted = alongTime(episode, episode.rewards, (rewards) =>
        discountedReturns(rewards, options.gamma),
      );
      return subtractInside(discounted, fines[e]!, options);
    });
    return gigpo({ scores, returns, anchors: group.episodes.map(anchorsOf) }, options);
  },
);

/**
 * Similarity of texts: the ratio of Python's `difflib.SequenceMatcher(None, a, b).ratio()`,
 * exactly, because the reference implementation of GiGPO clusters observations by it.
 *
 *   ratio = 2·M / (|a| + |b|)
 *
 * M counts the characters in matching blocks (Ratcliff and Obershelp): the longest common block,
 * then the same to its left and to its right. As in difflib ("autojunk"), if b has 200 characters
 * or more, a character that makes up more than 1 % of it can extend a block but not start one, so
 * the ratio is not symmetric. Lengths and characters are Unicode code points.
 */

/** A text prepared for comparisons. */
interface ComparableText {
  readonly characters: Int32Array;
  /** How often each character occurs. */
  readonly counts: ReadonlyMap<number, number>;
  /** Where each character that may start a matching block occurs. */
  readonly positions: ReadonlyMap<number, readonly number[]>;
}

/** Prepares a text for comparisons. */
export function comparable(text: string): ComparableText {
  const characters = codePoints(text);
  const positions = new Map<number, number[]>();
  characters.forEach((character, i) => {
    const list = positions.get(character);
    if (list === undefined) positions.set(character, [i]);
    else list.push(i);
  });
  const counts = new Map([...positions].map(([character, list]) => [character, list.length]));
  if (characters.length >= 200) {
    const popular = Math.floor(characters.length / 100) + 1;
    for (const [character, count] of counts) if (count > popular) positions.delete(character);
  }
  return { characters, counts, positions };
}

/** The similarity of two texts, between 0 and 1. */
export function ratio(a: ComparableText, b: ComparableText): number {
  return ratioOf(matchingCharacters(a, b, 0), a, b);
}

/** Whether the ratio reaches the threshold; cheap upper bounds are checked first. */
export function isSimilar(a: ComparableText, b: ComparableText, threshold: number): boolean {
  const reaches = (matches: number) => ratioOf(matches, a, b) >= threshold;
  const wanted = (threshold * (a.characters.length + b.characters.length)) / 2 - 1;
  return (
    reaches(Math.min(a.characters.length, b.characters.length)) &&
    reaches(sharedCharacters(a, b)) &&
    reaches(matchingCharacters(a, b, wanted))
  );
}

function ratioOf(matches: number, a: ComparableText, b: ComparableText): number {
  const length = a.characters.length + b.characters.length;
  return length === 0 ? 1 : (2 * matches) / length;
}

function codePoints(text: string): Int32Array {
  const points = new Int32Array(text.length);
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const point = text.codePointAt(i)!;
    points[count++] = point;
    // A character beyond 16 bits takes two places in the string.
    if (point > 0xffff) i++;
  }
  return points.subarray(0, count);
}

/** Characters in common in any order: an upper bound on the characters in matching blocks. */
function sharedCharacters(a: ComparableText, b: ComparableText): number {
  let shared = 0;
  for (const [character, count] of a.counts)
    shared += Math.min(count, b.counts.get(character) ?? 0);
  return shared;
}

/** M: the number of characters in matching blocks; stops early once M must be below `wanted`. */
function matchingCharacters(left: ComparableText, right: ComparableText, wanted: number): number {
  const a = left.characters;
  const b = right.characters;
  const { positions } = right;
  // Entry j + 1 is the length of the common run that ends at b[j] and at the current or last a[i].
  let runs = new Int32Array(b.length + 1);
  let previous = new Int32Array(b.length + 1);
  const waiting: Range[] = [[0, a.length, 0, b.length]];
  // What was found, and what may still be found in the pending ranges.
  let possible = mostMatches(waiting[0]!);
  for (let range = waiting.pop(); range !== undefined; range = waiting.pop()) {
    const [aLow, aHigh, bLow, bHigh] = range;
    let bestA = aLow;
    let bestB = bLow;
    let size = 0;
    for (let i = aLow; i < aHigh; i++) {
      for (const j of positions.get(a[i]!) ?? []) {
        if (j < bLow) continue;
        if (j >= bHigh) break;
        const run = previous[j]! + 1;
        runs[j + 1] = run;
        if (run > size) {
          bestA = i - run + 1;
          bestB = j - run + 1;
          size = run;
        }
      }
      [previous, runs] = [runs, previous];
      // Only what the row before last left behind is not 0.
      for (const j of i > aLow ? (positions.get(a[i - 1]!) ?? []) : []) runs[j + 1] = 0;
    }
    for (const j of aHigh > aLow ? (positions.get(a[aHigh - 1]!) ?? []) : []) previous[j + 1] = 0;
    while (bestA > aLow && bestB > bLow && a[bestA - 1] === b[bestB - 1]) {
      bestA--;
      bestB--;
      size++;
    }
    while (bestA + size < aHigh && bestB + size < bHigh && a[bestA + size] === b[bestB + size])
      size++;
    possible += size - mostMatches(range);
    if (size > 0) {
      const before: Range = [aLow, bestA, bLow, bestB];
      const after: Range = [bestA + size, aHigh, bestB + size, bHigh];
      possible += mostMatches(before) + mostMatches(after);
      waiting.push(before, after);
    }
    if (possible < wanted) break;
  }
  return possible;
}

/** Parts of both texts that are matched with each other: a from, a to, b from, b to. */
type Range = readonly [number, number, number, number];

function mostMatches([aLow, aHigh, bLow, bHigh]: Range): number {
  return Math.min(aHigh - aLow, bHigh - bLow);
}
