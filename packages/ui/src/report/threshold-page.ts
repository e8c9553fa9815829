/**
 * The page of `pawl wm threshold`: the distances of correct and wrong states, and what a threshold
 * does.
 */
import {
  type Distances,
  type LabelledPair,
  type PairKind,
  pairKinds,
  type ThresholdEffect,
} from "@pawl/worldmodel/rwml/threshold.js";
import { staticPage } from "./static-page.js";
import type { ThresholdView } from "./views.js";

/** The contents of the page. */
export interface ThresholdReport {
  readonly environment: string;
  readonly encoder: string;
  readonly dimension: number;
  readonly best: ThresholdEffect;
  readonly strict: ThresholdEffect;
  readonly pairs: readonly (LabelledPair & { readonly distance: number })[];
}

const kinds: readonly PairKind[] = [...pairKinds.right, ...pairKinds.wrong];

/** Points of a cumulative curve: enough to draw it, few enough to keep the file small. */
const MOST_POINTS = 80;

/** The distances of pairs, by kind. */
export function distancesOf(pairs: ThresholdReport["pairs"]): Distances {
  const of = (kind: PairKind) =>
    pairs.filter((pair) => pair.kind === kind).map(({ distance }) => distance);
  return Object.fromEntries(kinds.map((kind) => [kind, of(kind)])) as unknown as Distances;
}

/** The whole page, as HTML. */
export function thresholdPage(report: ThresholdReport): string {
  return staticPage(thresholdView(report));
}

/** The data of the page. */
function thresholdView(report: ThresholdReport): ThresholdView {
  const { environment, encoder, dimension, best, strict, pairs } = report;
  const distances = distancesOf(pairs);
  const row = (name: string, { threshold, accepted, accuracy }: ThresholdEffect) => ({
    name,
    threshold,
    accepted: kinds.map((kind) => accepted[kind]),
    accuracy,
  });
  return {
    kind: "threshold",
    title: `Distances of states: ${environment}`,
    lead: `${pairs.length} pairs of states, encoded by ${encoder} (${dimension} dimensions). A prediction is rewarded when its cosine distance to the real state is below the threshold. Same and paraphrase should be below it, the others above.`,
    threshold: best.threshold,
    curves: kinds.map((kind) => ({ label: kind, points: cumulative(distances[kind]) })),
    rows: [row("proposed", best), row("strict", strict)],
    examples: kinds.flatMap((kind) => {
      const of = pairs.filter((pair) => pair.kind === kind).sort((a, b) => a.distance - b.distance);
      if (of.length === 0) return [];
      const shown = [...new Set([of[0]!, of[of.length >> 1]!, of.at(-1)!])];
      return [
        {
          kind,
          pairs: shown.map(({ real, predicted, distance }) => ({ real, predicted, distance })),
        },
      ];
    }),
  };
}

type CurvePoint = readonly [x: number, y: number];

function cumulative(distances: readonly number[]): readonly CurvePoint[] {
  if (distances.length === 0) return [];
  const sorted = [...distances].sort((a, b) => a - b);
  const count = Math.min(MOST_POINTS, sorted.length);
  return [
    [0, 0],
    ...Array.from({ length: count }, (_, i): CurvePoint => {
      const at = Math.ceil(((i + 1) * sorted.length) / count) - 1;
      return [sorted[at]!, (at + 1) / sorted.length];
    }),
  ];
}
