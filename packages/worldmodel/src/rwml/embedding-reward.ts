/**
 * Reward by meaning: the cosine distance d between the embeddings of predicted and real next state.
 *
 *   binary   1 where d < τ, else 0
 *   graded   max(0, 1 − d / 2τ), which is one half where the binary one jumps
 */
import type { Encoder } from "@pawl/models/embeddings/encoder.js";
import type { StatePair, StateReward } from "./state-reward.js";

/** τ, and whether the reward is graded by distance. */
export interface EmbeddingRewardOptions {
  readonly threshold: number;
  readonly graded: boolean;
}

/** A reward from a sentence encoder. */
export function embeddingReward(
  encoder: Encoder,
  { threshold, graded }: EmbeddingRewardOptions,
): StateReward {
  return {
    name: `${encoder.name}, ${encoder.dimension} dimensions`,
    async rate(pairs) {
      const distances = await stateDistances(encoder, pairs);
      const values = distances.map((distance) =>
        graded ? Math.max(0, 1 - distance / (2 * threshold)) : distance < threshold ? 1 : 0,
      );
      return { values, unreadable: 0 };
    },
  };
}

/** The cosine distance of each pair, in [0, 2]; exactly 0 for equal texts. */
export async function stateDistances(
  encoder: Encoder,
  pairs: readonly Pick<StatePair, "predicted" | "real">[],
): Promise<readonly number[]> {
  const differing = pairs.filter(({ predicted, real }) => predicted !== real);
  const vectors = await encoder.encode(
    differing.flatMap(({ predicted, real }) => [predicted, real]),
  );
  let at = 0;
  return pairs.map(({ predicted, real }) => {
    if (predicted === real) return 0;
    const [a, b] = [vectors[at++]!, vectors[at++]!];
    let product = 0;
    for (let i = 0; i < encoder.dimension; i++) product += a[i]! * b[i]!;
    return Math.min(2, Math.max(0, 1 - product));
  });
}
