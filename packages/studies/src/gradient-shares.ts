/**
 * Where each world-model loss puts its gradient over recorded episodes: on noise tokens, or on
 * learnable ones (PaW appendix A.4 and figure 2c).
 */
import type { Engine } from "@pawl/core/engine/engine.js";
import { derivative } from "@pawl/core/objectives/expression-derivative.js";
import { evaluateTokens } from "@pawl/core/objectives/expression-evaluate.js";
import { pawOptions } from "@pawl/core/objectives/paw-options.js";
import {
  type WorldOptions,
  worldLossNames,
  worldTokenLoss,
} from "@pawl/core/objectives/world-losses.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";

/** The observation tokens of some steps, and which of them are noise. */
interface NoisyStep {
  readonly ids: readonly number[];
  readonly targets: Uint8Array;
  /** Whether each token from `start` on is noise. */
  readonly start: number;
  readonly noisy: readonly boolean[];
}

/** How the losses split their gradient under some weights. */
export interface GradientShares {
  readonly tokens: number;
  readonly noisyTokens: number;
  /** Mean probability of noise tokens and of the others. */
  readonly noisyP: number;
  readonly meaningfulP: number;
  readonly losses: readonly (GradientShare & { readonly loss: string })[];
}

/** The losses to compare, with ρ and mask if they have them. */
export function comparedLosses(rho: number): Readonly<Record<string, WorldOptions>> {
  const base = pawOptions().parse({ rho });
  const others = worldLossNames()
    .filter((loss) => loss !== "cmae")
    .sort();
  const masks = ["below", "above", "margin"] as const;
  return {
    ...Object.fromEntries(others.map((loss) => [loss, { ...base, loss }])),
    ...Object.fromEntries(
      masks.map((mask) => [`cmae ${mask} ${rho}`, { ...base, loss: "cmae", mask } as const]),
    ),
  };
}

/** For each step, whether each character of its observation is noise; undefined if unknown. */
export type NoiseJudge = (
  episode: Episode,
) =>
  | readonly (readonly boolean[] | undefined)[]
  | Promise<readonly (readonly boolean[] | undefined)[]>;

/**
 * Steps of recorded episodes with their noise tokens; steps that cannot be judged are skipped and
 * counted.
 */
export async function noisySteps(
  judge: NoiseJudge,
  tokenizer: Tokenizer,
  episodes: Iterable<Episode>,
): Promise<{ readonly steps: readonly NoisyStep[]; readonly left: number }> {
  const steps: NoisyStep[] = [];
  let left = 0;
  for (const episode of episodes) {
    if (episode.stop === "broken") continue;
    const characters = await judge(episode);
    episode.steps.forEach((step, i) => {
      const found = characters[i] && noisyStep(step, characters[i], tokenizer);
      if (found === undefined) left++;
      else steps.push(found);
    });
  }
  return { steps, left };
}

function noisyStep(
  { sequence, observation }: Step,
  characters: readonly boolean[],
  tokenizer: Tokenizer,
): NoisyStep | undefined {
  const span = sequence?.spans.find(({ kind }) => kind === "observation");
  if (sequence === undefined || span === undefined) return undefined;
  const { start } = span;
  const end = sequence.spans.findLast(({ kind }) => kind === "observation")!.end;
  const ids = sequence.ids.slice(0, end);
  let at = 0;
  const noisy = ids.slice(start).map((id) => {
    const text = tokenizer.decode([id]);
    // A marker of the prompt style corresponds to no character of the observation.
    if (text === "" || !observation.startsWith(text, at)) return false;
    const isNoisy = characters.slice(at, at + text.length).includes(true);
    at += text.length;
    return isNoisy;
  });
  return { ids, start, noisy, targets: Uint8Array.from(ids, (_, i) => (i >= start ? 1 : 0)) };
}

/** Asks the engine for the probability of every observation token and splits the gradients. */
export async function gradientShares(
  engine: Engine,
  steps: readonly NoisyStep[],
  losses: Readonly<Record<string, WorldOptions>>,
): Promise<GradientShares> {
  const results = await engine.forward(steps);
  const probabilities = results.flatMap(({ logprobs }, i) =>
    Array.from(logprobs.subarray(steps[i]!.start), Math.exp),
  );
  const noisy = steps.flatMap((step) => step.noisy);
  const mean = (wanted: boolean): number => {
    const chosen = probabilities.filter((_, i) => noisy[i] === wanted);
    return chosen.reduce((sum, p) => sum + p, 0) / chosen.length;
  };
  return {
    tokens: noisy.length,
    noisyTokens: noisy.filter(Boolean).length,
    noisyP: mean(true),
    meaningfulP: mean(false),
    losses: Object.entries(losses).map(([loss, options]) => ({
      loss,
      ...gradientShare(probabilities, noisy, options),
    })),
  };
}

// Where a world-model loss puts its gradient: the diagnostic of PaW appendix A.4 (figure 2c).
//
// The size of a token's gradient is |d loss / d z|, where z is the logit of the target token. As d
// log p / d z = 1 − p, it is |d loss / d log p|·(1 − p): 1 − p for CE, p·(1 − p) for MAE. It is
// summed over noisy tokens (random identifiers, brand names) and over the meaningful rest, and
// divided by the sum over both.

/** How a loss divides its gradient; both shares are 0 if there is no gradient at all. */
interface GradientShare {
  readonly noisy: number;
  readonly meaningful: number;
  /** The total gradient size that the shares divide. */
  readonly total: number;
}

/**
 * The share of the gradient on noisy tokens and on the others, from the probability of each token.
 */
export function gradientShare(
  probabilities: ArrayLike<number>,
  isNoisy: ArrayLike<number | boolean>,
  options: WorldOptions,
): GradientShare {
  if (isNoisy.length !== probabilities.length)
    throw new Error(
      `the mask of noisy tokens has ${isNoisy.length} entries; expected one for each of ${probabilities.length} tokens`,
    );
  const [slopes] = evaluateTokens([derivative(worldTokenLoss(options), "logprob")], {
    count: probabilities.length,
    quantities: { logprob: Float64Array.from(probabilities, Math.log) },
    inputs: {},
  });
  let noisy = 0;
  let meaningful = 0;
  for (let i = 0; i < probabilities.length; i++) {
    const size = Math.abs(slopes![i]!) * (1 - probabilities[i]!);
    if (isNoisy[i]) noisy += size;
    else meaningful += size;
  }
  const total = noisy + meaningful;
  const share = (part: number) => (total === 0 ? 0 : part / total);
  return { noisy: share(noisy), meaningful: share(meaningful), total };
}
