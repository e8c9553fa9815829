/**
 * What a model knows about its own candidates: whether it sees refusals coming, raises false alarms,
 * and how far its chances can be trusted.
 */
import type { Candidate, Episode } from "../episode.js";
import { CUT } from "./foresight.js";

/** Candidates whose predicted chance lies in one tenth. */
export interface ReliabilityBin {
  readonly from: number;
  readonly candidates: number;
  /** The mean chance, and the share in which it came so. */
  readonly predicted: number;
  readonly happened: number;
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
  /** Chances of refusal beside what was refused. */
  readonly bins: readonly ReliabilityBin[];
  /** Answers predicted word for word, as far as they were predicted. */
  readonly exact: number;
  /** Probabilities of predicted answers, beside how often just those came. */
  readonly answers: readonly ReliabilityBin[];
}

/** A chance, and whether it came so: 1 or 0. */
interface Judged {
  readonly chance: number;
  readonly happened: number;
}

const BINS = 10;

/** Collects candidates with predicted and true outcomes. */
export function createKnowledge(): {
  add(episode: Episode): void;
  /** Undefined if no outcome was both predicted and known. */
  result(): Knowledge | undefined;
} {
  const refusals: Judged[] = [];
  const answers: Judged[] = [];
  return {
    add({ steps }) {
      for (const { candidates = [] } of steps)
        for (const { truth, refused, predicted, probability } of candidates) {
          if (truth === undefined || refused === undefined) continue;
          refusals.push({ chance: refused, happened: truth.valid ? 0 : 1 });
          if (predicted !== undefined && probability !== undefined)
            answers.push({ chance: probability, happened: isSame(predicted, truth) ? 1 : 0 });
        }
    },
    result() {
      if (answers.length === 0) return undefined;
      const alarmed = (some: readonly Judged[]) =>
        mean(some, ({ chance }) => (chance >= 0.5 ? 1 : 0));
      const bad = refusals.filter(({ happened }) => happened === 1);
      const good = refusals.filter(({ happened }) => happened === 0);
      const share = bad.length / refusals.length;
      return {
        candidates: refusals.length,
        refused: share,
        ...(bad.length > 0 && { recall: alarmed(bad) }),
        ...(good.length > 0 && { falseAlarms: alarmed(good) }),
        brier: mean(refusals, ({ chance, happened }) => (chance - happened) ** 2),
        brierOfShare: share * (1 - share),
        bins: reliability(refusals),
        exact: mean(answers, ({ happened }) => happened),
        answers: reliability(answers),
      };
    },
  };
}

const mean = (some: readonly Judged[], of: (one: Judged) => number): number =>
  some.reduce((sum, one) => sum + of(one), 0) / some.length;

/** Chances by tenths; tenths without any are left out. */
function reliability(all: readonly Judged[]): readonly ReliabilityBin[] {
  return Array.from({ length: BINS }, (_, bin) => {
    const inside = all.filter(
      ({ chance }) => Math.min(BINS - 1, Math.floor(chance * BINS)) === bin,
    );
    return {
      from: bin / BINS,
      candidates: inside.length,
      predicted: mean(inside, ({ chance }) => chance),
      happened: mean(inside, ({ happened }) => happened),
    };
  }).filter(({ candidates }) => candidates > 0);
}

/** Whether what was predicted is the answer, or how it begins. */
function isSame(predicted: string, { observation }: NonNullable<Candidate["truth"]>): boolean {
  const truth = observation.trim();
  return predicted.endsWith(CUT)
    ? truth.startsWith(predicted.slice(0, -CUT.length))
    : truth === predicted.trim();
}
