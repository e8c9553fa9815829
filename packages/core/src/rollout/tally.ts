/** A running count over episodes: success, returns, steps and invalid actions. */
import { type Episode, ownSteps } from "./episode.js";

/**
 * Counts over the episodes of one kind. A broken episode counts only as broken; steps that a branch
 * shares with another episode count there.
 */
export interface Counts {
  readonly episodes: number;
  readonly broken: number;
  readonly successes: number;
  readonly steps: number;
  /** Responses without the required format. */
  readonly malformed: number;
  /** Well-formed actions that the environment could not carry out. */
  readonly refused: number;
  readonly returns: number;
  /** Sum of the scores of the episodes that have one, and the number of those episodes. */
  readonly scores: number;
  readonly scored: number;
}

/** Counts overall and by task type. */
export interface Tally {
  add(episode: Episode): void;
  readonly all: Counts;
  readonly byType: ReadonlyMap<string, Counts>;
  /**
   * How many tasks have an attempt that counts, and how many of them were solved within the first
   * 1, 2, … attempts: what Reflexion is scored by. Another group of the same task is another task.
   */
  readonly attempts: {
    readonly tasks: number;
    readonly solvedWithin: readonly number[];
    /**
     * pass^k for k = 1, 2, …: the chance that all of k attempts at a task solve it, the mean over
     * tasks of C(solved, k) / C(attempts, k) (τ-bench, sec. 3). As far as every task has k attempts.
     */
    readonly passAll: readonly number[];
  };
  /** How many episodes broke for each reason, in the order in which the reasons came. */
  readonly broken: ReadonlyMap<string, number>;
  /** What was sampled for agents, and those of these tokens that nothing can be learnt from, by why. */
  readonly tokens: { readonly sampled: number; readonly untrained: ReadonlyMap<string, number> };
}

const NOTHING: Counts = {
  episodes: 0,
  broken: 0,
  successes: 0,
  steps: 0,
  malformed: 0,
  refused: 0,
  returns: 0,
  scores: 0,
  scored: 0,
};

/** An empty tally. */
export function createTally(): Tally {
  const byType = new Map<string, Counts>();
  const broken = new Map<string, number>();
  const firstSuccess = new Map<string, number>();
  const tried = new Map<string, { readonly attempts: number; readonly solved: number }>();
  let attempts = 0;
  let all = NOTHING;
  const tokens = { sampled: 0, untrained: new Map<string, number>() };
  return {
    tokens,
    add(episode) {
      for (const [why, count] of sampledTokens(episode)) {
        tokens.sampled += count;
        if (why !== undefined) tokens.untrained.set(why, (tokens.untrained.get(why) ?? 0) + count);
      }
      if (episode.stop === "broken") {
        const reason = episode.error ?? "no reason given";
        broken.set(reason, (broken.get(reason) ?? 0) + 1);
      } else {
        const key = `${episode.group} ${episode.task.id}`;
        const solved = episode.success ? episode.attempt : Number.POSITIVE_INFINITY;
        firstSuccess.set(key, Math.min(firstSuccess.get(key) ?? solved, solved));
        const before = tried.get(key) ?? { attempts: 0, solved: 0 };
        tried.set(key, {
          attempts: before.attempts + 1,
          solved: before.solved + (episode.success ? 1 : 0),
        });
        attempts = Math.max(attempts, episode.attempt + 1);
      }
      all = plus(all, episode);
      byType.set(episode.task.type, plus(byType.get(episode.task.type) ?? NOTHING, episode));
    },
    get all() {
      return all;
    },
    byType,
    get attempts() {
      const first = [...firstSuccess.values()];
      const solvedBy = (at: number): number => first.filter((attempt) => attempt <= at).length;
      return {
        tasks: first.length,
        solvedWithin: Array.from({ length: attempts }, (_, at) => solvedBy(at)),
        passAll: passAll([...tried.values()]),
      };
    },
    broken,
  };
}

/** The tokens of an agent's episode, with why they cannot be learnt from, if so. */
function sampledTokens(episode: Episode): readonly (readonly [string | undefined, number])[] {
  const { given, stop, untrained = {} } = episode;
  if (given === undefined) return [];
  const spans = ownSteps(episode).flatMap(({ sequence }) => sequence?.spans ?? []);
  const written = spans.reduce(
    (sum, { kind, start, end }) => sum + (kind === "action" ? end - start : 0),
    0,
  );
  const why = stop === "broken" && written > 0 ? "in broken episodes" : undefined;
  return [...Object.entries(untrained), [why, written]];
}

/** The share of the sampled tokens that can be learnt from; NaN without any. */
export function trainedShare({ sampled, untrained }: Tally["tokens"]): number {
  return 1 - [...untrained.values()].reduce((sum, count) => sum + count, 0) / sampled;
}

/** pass^k for every k that all tasks have attempts for. */
function passAll(
  tasks: readonly { readonly attempts: number; readonly solved: number }[],
): readonly number[] {
  const least = tasks.reduce(
    (low, { attempts }) => Math.min(low, attempts),
    Number.POSITIVE_INFINITY,
  );
  return Array.from({ length: Number.isFinite(least) ? least : 0 }, (_, at) => {
    const chances = tasks.map(({ attempts, solved }) => {
      let chance = 1;
      // C(solved, k) / C(attempts, k), factor by factor.
      for (let one = 0; one <= at; one++) chance *= Math.max(0, solved - one) / (attempts - one);
      return chance;
    });
    return chances.reduce((sum, one) => sum + one, 0) / tasks.length;
  });
}

function plus(counts: Counts, episode: Episode): Counts {
  if (episode.stop === "broken") return { ...counts, broken: counts.broken + 1 };
  let malformed = 0;
  let refused = 0;
  const steps = ownSteps(episode);
  for (const step of steps) {
    if (!step.wellFormed) malformed++;
    else if (!step.valid) refused++;
  }
  return {
    episodes: counts.episodes + 1,
    broken: counts.broken,
    successes: counts.successes + (episode.success ? 1 : 0),
    steps: counts.steps + steps.length,
    malformed: counts.malformed + malformed,
    refused: counts.refused + refused,
    returns: counts.returns + episode.return,
    scores: counts.scores + (episode.score ?? 0),
    scored: counts.scored + (episode.score === undefined ? 0 : 1),
  };
}

/** The rates and means of some counts; NaN if nothing was counted. */
export function rates(counts: Counts): {
  readonly success: number;
  readonly meanReturn: number;
  readonly meanSteps: number;
  readonly invalid: number;
  readonly score: number;
} {
  return {
    success: counts.successes / counts.episodes,
    meanReturn: counts.returns / counts.episodes,
    meanSteps: counts.steps / counts.episodes,
    invalid: (counts.malformed + counts.refused) / counts.steps,
    score: counts.scores / counts.scored,
  };
}

/**
 * Success and score averaged over task types with equal weight: the average of the paper's table 2.
 */
export function meanOfTypes(tally: Tally): { readonly success: number; readonly score: number } {
  const counted = [...tally.byType.values()].filter(({ episodes }) => episodes > 0).map(rates);
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    success: mean(counted.map(({ success }) => success)),
    score: mean(counted.map(({ score }) => score)),
  };
}
