/**
 * Anchors: which observations of a group count as the same.
 *
 * Equal texts always do. Below a similarity of 1, texts are clustered greedily in order, as in the
 * reference implementation: a text joins the first cluster whose first member is similar enough, or
 * starts a new cluster.
 */
import type { Episode } from "../rollout/episode.js";
import { type ComparableText, comparable, isSimilar } from "./similarity.js";

/** The observation that a step of an episode acted on. */
export function observationBefore(episode: Episode, step: number): string {
  const { seen } = episode.steps[step]!;
  return seen ?? (step === 0 ? episode.firstObservation : episode.steps[step - 1]!.observation);
}

/** The number of each text's cluster, counted from 0 in order of appearance. */
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
