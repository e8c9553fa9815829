/**
 * What a model knows about its own candidates: whether it sees refusals coming, raises false alarms,
 * and how far its chances can be trusted.
 */
import type { Candidate, Episode } from "../episode.js";
import { CUT } from "./foresight.js";

/** Candidates whose predicted chance of refusal lies in one tenth. */
export interface ReliabilityBin {
  readonly from: number;
  readonly candidates: number;
  /** The mean chance, and the share that was refused. */
  readonly predicted: number;
  readonly refused: number;
}

/** Knowledge of the outcomes of candidates among which there was a choice. */
export interface Knowledge {
  readonly candidates: number;
  /** The share that the world refuses. */
  readonly refused: number;
  /** Of what is refused, the share that was given a chance of one half or more. */
  readonly recall?: number;
  /** Of what is carried out, the share that was given such a chance. */
  readonly falseAlarms?: number;
  /** Mean squared error of the chance; always saying the share that is refused has `brierOfShare`. */
  readonly brier: number;
  readonly brierOfShare: number;
  /** Answers predicted word for word, as far as they were predicted. */
  readonly exact: number;
  readonly bins: readonly ReliabilityBin[];
}

const BINS = 10;

/** Collects candidates with predicted and true outcomes. */
export function createKnowledge(): {
  add(episode: Episode): void;
  /** Undefined if no outcome was both predicted and known. */
  result(): Knowledge | undefined;
} {
  const known: { readonly chance: number; readonly refused: number; readonly exact: boolean }[] =
    [];
  return {
    add({ steps }) {
      for (const { candidates = [] } of steps)
        for (const { truth, refused, predicted } of candidates)
          if (truth !== undefined && refused !== undefined)
            known.push({
              chance: refused,
              refused: truth.valid ? 0 : 1,
              exact: isSame(predicted, truth),
            });
    },
    result() {
      if (known.length === 0) return undefined;
      const mean = (of: (one: (typeof known)[number]) => number, some = known): number =>
        some.reduce((sum, one) => sum + of(one), 0) / some.length;
      const alarmed = (some: typeof known) => mean(({ chance }) => (chance >= 0.5 ? 1 : 0), some);
      const bad = known.filter(({ refused }) => refused === 1);
      const good = known.filter(({ refused }) => refused === 0);
      const share = bad.length / known.length;
      return {
        candidates: known.length,
        refused: share,
        ...(bad.length > 0 && { recall: alarmed(bad) }),
        ...(good.length > 0 && { falseAlarms: alarmed(good) }),
        brier: mean(({ chance, refused }) => (chance - refused) ** 2),
        brierOfShare: share * (1 - share),
        exact: mean(({ exact }) => (exact ? 1 : 0)),
        bins: Array.from({ length: BINS }, (_, bin) => {
          const inside = known.filter(
            ({ chance }) => Math.min(BINS - 1, Math.floor(chance * BINS)) === bin,
          );
          return {
            from: bin / BINS,
            candidates: inside.length,
            predicted: inside.length === 0 ? 0 : mean(({ chance }) => chance, inside),
            refused: inside.length === 0 ? 0 : mean(({ refused }) => refused, inside),
          };
        }).filter(({ candidates }) => candidates > 0),
      };
    },
  };
}

/** Whether what was predicted is the answer, or how it begins. */
function isSame(
  predicted: string | undefined,
  { observation }: NonNullable<Candidate["truth"]>,
): boolean {
  if (predicted === undefined) return false;
  const truth = observation.trim();
  return predicted.endsWith(CUT)
    ? truth.startsWith(predicted.slice(0, -CUT.length))
    : truth === predicted.trim();
}
