/**
 * A short search for the settings that matter most: learning rate, then episodes imitated, then group
 * size, each by successive halving over updates and seeds.
 *
 * What is chosen depends on the results alone; time decides only how much of the search there is. So
 * a search that is repeated with the results of an earlier one goes on where that one stopped.
 */
import { successInterval } from "@pawl/core/success-interval.js";

/** A combination of the settings that are searched. */
export interface Candidate {
  readonly rate: number;
  /** Episodes imitated before RL. */
  readonly imitation: number;
  readonly groupSize: number;
}

/** A run of a candidate. */
export interface Trial {
  readonly candidate: Candidate;
  readonly seed: number;
}

/** How a model did on a split. */
export interface Score {
  readonly successes: number;
  readonly episodes: number;
}

/** A run's score, or how it failed. */
export type Outcome = Score | { readonly failed: string };

/** Trains and evaluates; undefined if there is no time for it, or it ran out. */
export interface TuneRunner {
  /** Trains all to this many updates, and evaluates them on the split that settings are chosen on. */
  train(trials: readonly Trial[], updates: number): Promise<readonly Outcome[] | undefined>;
  /** Trains all to the end, and evaluates them on the split that nothing was chosen on. */
  judge(trials: readonly Trial[]): Promise<readonly Outcome[] | undefined>;
}

/** What to search. */
export interface TunePlan {
  /** The settings to begin with. */
  readonly given: Candidate;
  /** Whether the number of imitated episodes is searched, too. */
  readonly imitates: boolean;
  /** Updates of a whole run, and of a first look at one. */
  readonly updates: number;
  readonly early: number;
  /** The first seed. */
  readonly seed: number;
}

/** A candidate in a round: its score over the round's seeds, or how it failed. */
export interface Tried {
  readonly candidate: Candidate;
  readonly score: Score | undefined;
  readonly failed?: string;
}

/** A round: the candidates that were compared, best first, and those that were kept. */
export interface Round {
  readonly about: string;
  readonly updates: number;
  readonly seeds: readonly number[];
  readonly tried: readonly Tried[];
  readonly kept: readonly Candidate[];
  readonly why: string;
}

/** The chosen and the given settings with a seed that chose nothing. */
export interface Judged {
  readonly seed: number;
  readonly chosen: Score | undefined;
  /** Absent if nothing else was chosen. */
  readonly given?: Score | undefined;
}

/** What a search has found. */
export interface Found {
  readonly chosen: Candidate;
  readonly rounds: readonly Round[];
  /** Whether time ended the search. */
  readonly isCut: boolean;
  readonly judged: readonly Judged[];
}

/** How many seeds choose. */
export const CHOOSING = 2;
/** At most so many judge. */
const JUDGING = 5;
/** Learning rates are tried in steps of about √10 to both sides, and on from there while it helps. */
const RATES: readonly number[] = [-2, -1, 0, 1, 2];
const MOST_RATES = 9;

/** 10^(step / 2) in round numbers: 0.1, 0.3, 1, 3, 10. */
export const rateFactor = (step: number): number =>
  Number(`${step % 2 === 0 ? 1 : 3}e${Math.floor(step / 2)}`);

/** Searches until the end, or as far as there is time; then judges. */
export async function tune(
  plan: TunePlan,
  runner: TuneRunner,
  onRound: (round: Round) => void = () => undefined,
): Promise<Found> {
  const rounds: Round[] = [];
  let isCut = false;
  const { given, seed, updates, early } = plan;
  const looks = [
    ...(early < updates ? [{ updates: early, seeds: [seed] }] : []),
    { updates, seeds: [seed] },
    { updates, seeds: Array.from({ length: CHOOSING }, (_, i) => seed + i) },
  ];

  /**
   * The best of some candidates, listed in the order that decides between equals; the one that is the
   * best so far if there is no time for them.
   */
  const race = async (
    about: string,
    soFar: Candidate,
    entrants: readonly Candidate[],
  ): Promise<Candidate> => {
    let leader = soFar;
    let left = entrants;
    for (const [i, look] of looks.entries()) {
      const trials = left.flatMap((candidate) =>
        look.seeds.map((one) => ({ candidate, seed: one })),
      );
      const outcomes = await runner.train(trials, look.updates);
      if (outcomes === undefined) {
        isCut = true;
        break;
      }
      const most = i === looks.length - 1 ? 1 : Math.max(2, Math.ceil(left.length / 2));
      const round = { about, ...look, ...decide(left, outcomes, most) };
      rounds.push(round);
      onRound(round);
      left = round.kept;
      leader = left[0] ?? leader;
      if (left.length < 2) break;
    }
    return leader;
  };

  const atStep = (step: number): Candidate => ({
    ...given,
    rate: Number((given.rate * rateFactor(step)).toPrecision(3)),
  });
  let best = await race("learning rate", given, RATES.map(atStep));
  let [lowest, highest] = [RATES[0]!, RATES.at(-1)!];
  while (!isCut && highest - lowest < MOST_RATES) {
    const isLowest = isSame(best, atStep(lowest));
    if (!isLowest && !isSame(best, atStep(highest))) break;
    const next = atStep(isLowest ? --lowest : ++highest);
    // Where nothing succeeds at all, a smaller rate may.
    const hopeless = rounds.at(-1)?.tried[0]?.score?.successes === 0;
    const won = await race(
      "learning rate",
      best,
      isLowest && hopeless ? [next, best] : [best, next],
    );
    if (!isSame(won, next)) break;
    best = won;
  }
  if (!isCut && plan.imitates) {
    const others = [Math.round(best.imitation / 2), 2 * best.imitation];
    const entrants = [best, ...others.map((imitation) => ({ ...best, imitation }))];
    best = await race("imitation", best, entrants);
  }
  if (!isCut) {
    const others = [Math.round(best.groupSize / 2), 2 * best.groupSize].filter((size) => size > 1);
    const entrants = [best, ...others.map((groupSize) => ({ ...best, groupSize }))];
    best = await race("group size", best, entrants);
  }
  if (rounds.length === 0) return { chosen: given, rounds, isCut, judged: [] };

  const judged: Judged[] = [];
  while (judged.length < JUDGING) {
    const own = seed + CHOOSING + judged.length;
    const arms = isSame(best, given) ? [best] : [best, given];
    const outcomes = await runner.judge(arms.map((candidate) => ({ candidate, seed: own })));
    if (outcomes === undefined) break;
    const [chosen, other] = outcomes.map(scoreOf);
    judged.push({ seed: own, chosen, ...(arms.length > 1 && { given: other }) });
  }
  return { chosen: best, rounds, isCut, judged };
}

/** Ranks candidates by their success over all seeds, and keeps the better ones. */
function decide(
  left: readonly Candidate[],
  outcomes: readonly Outcome[],
  most: number,
): Pick<Round, "tried" | "kept" | "why"> {
  const each = outcomes.length / left.length;
  const tried = left.map((candidate, i): Tried => {
    const own = outcomes.slice(i * each, (i + 1) * each);
    const failed = own.flatMap((one) => ("failed" in one ? [one.failed] : []))[0];
    return failed === undefined
      ? { candidate, score: pooled(own.flatMap((one) => scoreOf(one) ?? [])) }
      : { candidate, score: undefined, failed };
  });
  const rateOf = ({ score }: Tried): number => (score === undefined ? -1 : successOf(score));
  const ranked = [...tried].sort((a, b) => rateOf(b) - rateOf(a));
  const [leader] = ranked as [Tried, ...Tried[]];
  const whole = ranked.filter(({ score }) => score !== undefined);
  const [low] = leader.score === undefined ? [0] : successInterval(leader.score);
  const better = whole.slice(0, most);
  const kept = better.filter(({ score }) => successInterval(score!)[1] >= low);
  const worse = better.length - kept.length;
  const why = [
    most === 1 ? "the best" : `${kept.length} of ${left.length}`,
    ...(worse > 0 ? [`${worse} of the better half are clearly worse than the best`] : []),
    ...(whole.length < ranked.length ? [`${ranked.length - whole.length} failed`] : []),
  ].join("; ");
  return { tried: ranked, kept: kept.map(({ candidate }) => candidate), why };
}

/** Success as a share; nothing played is no success. */
export const successOf = ({ successes, episodes }: Score): number =>
  episodes === 0 ? 0 : successes / episodes;

/** All scores as one. */
export const pooled = (scores: readonly Score[]): Score => ({
  successes: scores.reduce((sum, { successes }) => sum + successes, 0),
  episodes: scores.reduce((sum, { episodes }) => sum + episodes, 0),
});

const scoreOf = (outcome: Outcome): Score | undefined =>
  "failed" in outcome ? undefined : outcome;

const isSame = (a: Candidate, b: Candidate): boolean =>
  a.rate === b.rate && a.imitation === b.imitation && a.groupSize === b.groupSize;
