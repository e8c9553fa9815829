/**
 * Textbook advantages, for replay: written a second time on purpose, from the papers' formulas and
 * not from `advantages/`, so that replay can catch a mistake there. Each estimator's file has its
 * formula.
 *
 * Undefined for estimators that were added later, and for GiGPO's text similarity.
 */
import type {
  AdvantageOptions,
  Advantages,
  TokenNumbers,
} from "@pawl/core/advantages/advantages.js";
import type { Episode, Group, Step } from "@pawl/core/rollout/episode.js";

/** One step that counts. */
interface StepScore {
  readonly episode: number;
  readonly step: number;
  readonly fined: boolean;
  /** The step's own penalty. */
  readonly penalty: number;
  readonly score: number;
}

/** The advantages of all groups; undefined if there is no second implementation. */
export function recountAdvantages(
  groups: readonly Group[],
  options: AdvantageOptions,
  values?: TokenNumbers,
): Advantages | undefined {
  const own = groups.map((group) => ({ ...group, episodes: group.episodes.map(afterHint) }));
  const computed = recountOwn(own, options, values);
  /** What a teacher did is worth nothing. */
  const moved = <T>(table: readonly (readonly (readonly T[])[])[], nothing: T) =>
    table.map((episodes, g) =>
      episodes.map((steps, e) => {
        const { hint = 0, stop } = groups[g]!.episodes[e]!;
        return stop === "broken"
          ? steps
          : [...Array.from({ length: hint }, () => nothing), ...steps];
      }),
    );
  if (computed === undefined) return undefined;
  const { advantages, returns } = computed;
  return {
    advantages: moved<number | readonly number[]>(advantages, 0),
    ...(returns && { returns: moved<readonly number[]>(returns, []) }),
  };
}

/** The episode as if it had begun where its hint ended. */
function afterHint({ hint = 0, ...episode }: Episode): Episode {
  if (hint === 0) return episode;
  const { branch, steps } = episode;
  return {
    ...episode,
    ...(branch && { branch: { from: branch.from, step: branch.step - hint } }),
    firstObservation: steps[hint - 1]?.observation ?? episode.firstObservation,
    steps: steps.slice(hint),
  };
}

function recountOwn(
  groups: readonly Group[],
  options: AdvantageOptions,
  values?: TokenNumbers,
): Advantages | undefined {
  if (options.name === "ppo") return values && recountGae(groups, options, values);
  const of = groupAdvantages(options);
  if (of === undefined) return undefined;
  const late = options.penaltyPlace === "after" ? options.penalty : 0;
  return {
    advantages: groups.map((group) => {
      const numbers = of(group);
      const steps = stepsOf(group, options);
      return group.episodes.map((_, e) =>
        steps.flatMap(({ episode, fined }, i) =>
          episode === e ? [numbers[i]! - (fined ? late : 0)] : [],
        ),
      );
    }),
  };
}

/** The advantages of a group's steps, in order. */
function groupAdvantages(
  options: AdvantageOptions,
): ((group: Group) => readonly number[]) | undefined {
  switch (options.name) {
    case "grpo":
      return (group) =>
        normalised(stepsOf(group, options), options.per, options.norm === "mean-std");
    case "rloo":
      return (group) => leaveOneOut(stepsOf(group, options), options.per);
    case "tree":
      return (group) => branched(group, options);
    case "gigpo":
      return options.similarity < 1 ? undefined : (group) => anchored(group, options);
    default:
      return undefined;
  }
}

type TreeOptions = Extract<AdvantageOptions, { name: "tree" }>;
type GigpoOptions = Extract<AdvantageOptions, { name: "gigpo" }>;
type PpoOptions = Extract<AdvantageOptions, { name: "ppo" }>;

const isWhole = ({ stop }: Episode): boolean => stop !== "broken";
const sum = (values: readonly number[]): number => values.reduce((total, x) => total + x, 0);
// Exact for equal values: their advantage is 0, whose sign would otherwise decide what is clipped.
const mean = (values: readonly number[]): number =>
  values.every((x) => x === values[0]) ? (values[0] ?? 0) : sum(values) / values.length;
/** With the denominator n − 1. */
const deviation = (values: readonly number[]): number => {
  const center = mean(values);
  return Math.sqrt(sum(values.map((x) => (x - center) ** 2)) / (values.length - 1));
};

/** Whether a step has to pay the penalty. */
function isFined({ wellFormed, valid }: Step, { penaltyOn }: AdvantageOptions): boolean {
  return !wellFormed || (penaltyOn === "invalid" && !valid);
}

function stepsOf(group: Group, options: AdvantageOptions): readonly StepScore[] {
  return group.episodes.flatMap((episode, e) =>
    (isWhole(episode) ? episode.steps : []).map((played, step) => {
      const fined = isFined(played, options);
      const penalty = options.penaltyPlace === "inside" && fined ? options.penalty : 0;
      return { episode: e, step, fined, penalty, score: episode.return - penalty };
    }),
  );
}

/** When a step was taken: as listed, unless the record says otherwise. */
const takenAt = (steps: readonly Step[], step: number): number => steps[step]!.time ?? step;

/** What statistics run over: all scores, or one per episode. */
function compared(steps: readonly StepScore[], per: string): readonly number[] {
  if (per === "step") return steps.map(({ score }) => score);
  const episodes = [...new Set(steps.map(({ episode }) => episode))];
  return episodes.map((e) =>
    mean(steps.filter(({ episode }) => episode === e).map(({ score }) => score)),
  );
}

function normalised(steps: readonly StepScore[], per: string, spread: boolean): readonly number[] {
  const values = compared(steps, per);
  if (values.length < 2) return steps.map(({ score }) => score);
  const [center, scale] = [mean(values), spread ? deviation(values) + 1e-6 : 1];
  return steps.map(({ score }) => (score - center) / scale);
}

function leaveOneOut(steps: readonly StepScore[], per: string): readonly number[] {
  if (per === "other-episodes")
    return steps.map(({ episode, score }) => {
      const others = compared(
        steps.filter((other) => other.episode !== episode),
        "episode",
      );
      return others.length === 0 ? score : score - mean(others);
    });
  const values = compared(steps, per);
  if (values.length < 2) return steps.map(({ score }) => score);
  // Algebraically the distance from the mean of the others.
  const [center, n] = [mean(values), values.length];
  return steps.map(({ score }) => (n / (n - 1)) * (score - center));
}

/**
 * A tree's: each step once, worth the mean return of whoever took it, also against whoever was in the
 * state after which its episodes went different ways.
 */
function branched(group: Group, options: TreeOptions): readonly number[] {
  const whole = group.episodes.filter(isWhole);
  /** The attempt that played step t of an episode first. */
  const playedBy = ({ attempt, branch }: Episode, t: number): number =>
    branch !== undefined && t < branch.step ? branch.from : attempt;
  /** The mean return of all that took step t as this episode did. */
  const worth = (episode: Episode, t: number): number =>
    mean(
      whole
        .filter((other) => t < other.steps.length && playedBy(other, t) === playedBy(episode, t))
        .map((other) => other.return),
    );
  const lone = stepsOf(group, options).map((one) => {
    const episode = group.episodes[one.episode]!;
    const forks = group.episodes.flatMap(({ attempt, branch, stop }) =>
      branch !== undefined &&
      stop !== "broken" &&
      (attempt === episode.attempt || branch.from === episode.attempt) &&
      branch.step <= one.step
        ? [branch.step]
        : [],
    );
    const value = worth(episode, one.step);
    const before = forks.length === 0 ? value : worth(episode, Math.max(...forks) - 1);
    const isOwn = playedBy(episode, one.step) === episode.attempt;
    return { ...one, isOwn, score: value - one.penalty, local: value - before };
  });
  const own = lone.filter(({ isOwn }) => isOwn);
  const values = compared(own, options.per);
  const few = values.length < 2;
  const center = few ? 0 : mean(values);
  const scale = few || options.norm === "mean" ? 1 : deviation(values) + 1e-6;
  return lone.map(({ isOwn, score, local }) =>
    isOwn ? (score + options.branchWeight * local - center) / scale : 0,
  );
}

function anchored(group: Group, options: GigpoOptions): readonly number[] {
  const spread = options.norm === "mean-std";
  const steps = stepsOf(group, options);
  const later = steps.map(({ episode: e, step, penalty }) => {
    const { steps: played } = group.episodes[e]!;
    const now = takenAt(played, step);
    // Rewards from now on, each discounted by how many steps later it came.
    const worth = played.map(({ reward }, other) => {
      const wait = takenAt(played, other) - now;
      return wait < 0 ? 0 : options.gamma ** wait * reward;
    });
    return sum(worth) - penalty;
  });
  const anchors = steps.map(({ episode: e, step }) => {
    const { firstObservation, steps: played } = group.episodes[e]!;
    const { seen } = played[step]!;
    if (seen !== undefined) return seen;
    return step === 0 ? firstObservation : played[step - 1]!.observation;
  });
  const peersOf = new Map<string, readonly number[]>();
  for (const [i, anchor] of anchors.entries())
    peersOf.set(anchor, [...(peersOf.get(anchor) ?? []), later[i]!]);
  return normalised(steps, options.per, spread).map((advantage, i) => {
    const peers = peersOf.get(anchors[i]!)!;
    if (peers.length < 2) return advantage;
    const scale = spread ? deviation(peers) + 1e-6 : 1;
    return advantage + (options.stepWeight * (later[i]! - mean(peers))) / scale;
  });
}

/** One action token, in the order of time. */
interface ValuedToken {
  readonly step: number;
  readonly value: number;
  /** The token's reward: only the last token of a step has one. */
  readonly reward: number;
  readonly isLast: boolean;
}

function recountGae(
  groups: readonly Group[],
  options: PpoOptions,
  values: TokenNumbers,
): Advantages {
  const { gamma, lambda, scope, penalty, penaltyPlace } = options;
  const raw = groups.map((group, g) =>
    group.episodes.map((episode, e) => {
      const steps = isWhole(episode) ? episode.steps : [];
      const order = steps.map((_, step) => step);
      order.sort((a, b) => takenAt(steps, a) - takenAt(steps, b));
      const tokens = order.flatMap((step): readonly ValuedToken[] => {
        const played = steps[step]!;
        const fine = penaltyPlace === "inside" && isFined(played, options) ? penalty : 0;
        const earned = (scope === "response" ? episode.return : played.reward) - fine;
        const valuesOfStep = values[g]![e]![step]!;
        return valuesOfStep.map((value, i) => {
          const isLast = i === valuesOfStep.length - 1;
          return { step, value, reward: isLast ? earned : 0, isLast };
        });
      });
      const advantages = new Array<number>(tokens.length).fill(0);
      for (let i = tokens.length - 1; i >= 0; i--) {
        const { value, reward, isLast } = tokens[i]!;
        const ends = i + 1 === tokens.length || (scope === "response" && isLast);
        // Across turns, γ and λ count turns, not tokens.
        const inside = scope === "episode" && !isLast;
        const [g1, l1] = inside ? [1, 1] : [gamma, lambda];
        const next = ends ? 0 : tokens[i + 1]!.value;
        advantages[i] = reward + g1 * next - value + (ends ? 0 : g1 * l1 * advantages[i + 1]!);
      }
      return steps.map((step, t) => ({
        late: penaltyPlace === "after" && isFined(step, options) ? penalty : 0,
        tokens: tokens.flatMap((token, i) =>
          token.step === t ? [{ advantage: advantages[i]!, value: token.value }] : [],
        ),
      }));
    }),
  );
  const all = raw.flat(2).flatMap(({ tokens }) => tokens.map(({ advantage }) => advantage));
  const center = mean(all);
  const variance = all.length < 2 ? 0 : deviation(all) ** 2;
  return {
    advantages: raw.map((episodes) =>
      episodes.map((steps) =>
        steps.map(({ tokens, late }) =>
          tokens.map(({ advantage }) => (advantage - center) / Math.sqrt(variance + 1e-8) - late),
        ),
      ),
    ),
    returns: raw.map((episodes) =>
      episodes.map((steps) =>
        steps.map(({ tokens }) => tokens.map(({ advantage, value }) => advantage + value)),
      ),
    ),
  };
}
