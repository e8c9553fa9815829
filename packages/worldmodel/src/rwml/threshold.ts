/**
 * A threshold for the embedding reward: the distance that best separates right from wrong states.
 */
import { type Env, type Environment, isRemote, type RemoteEnv } from "@pawl/core/envs/env.js";
import { UserError } from "@pawl/core/errors.js";
import { createRandom, mixSeed, type Random } from "@pawl/core/random.js";

// Pairs of states that mean the same and pairs that do not, from an environment: what a threshold
// must separate. Right pairs: the same text with different spacing and case, and paraphrases. Wrong
// pairs: one fact altered, the result of another action, and the observation of another moment.

/** Phrases of text worlds and their paraphrases. */
const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\byou hold nothing\b/gi, "your hands are empty"],
  [/\byou hold (?=\w)/gi, "you are carrying "],
  [/\byou carry\b/gi, "you are holding"],
  [/\bis (now )?closed\b/gi, "is shut"],
  [/\bis open now\b/gi, "now stands open"],
  [/\bis open\b/gi, "stands open"],
  [/\bis (\w+) now\b/gi, "has become $1"],
  [/\byou walk into\b/gi, "you enter"],
  [/\byou are in\b/gi, "you find yourself in"],
  [/\byou arrive at\b/gi, "you are now at"],
  [/\byou see\b/gi, "you notice"],
  [/\byou pick up\b/gi, "you take"],
  [/\byou put\b/gi, "you place"],
  [/\byou open\b/gi, "you have opened"],
  [/\byou close\b/gi, "you have closed"],
  [/\btaken from\b/gi, "you took it from"],
  [/\bnow on\b/gi, "there are now on"],
  [/\bnothing happens\b/gi, "nothing changes"],
  [/\bthere is no\b/gi, "there is not any"],
  [/\bcannot\b/gi, "are unable to"],
  [/\bdo not\b/gi, "don't"],
  [/\balready\b/gi, "by now"],
];

/** The same text with different spacing and case, like a careless copy. */
export function respell(text: string): string {
  return text.toLowerCase().replace(/\s+/g, " ").replace(/\.$/, "").trim();
}

/** A paraphrase: other phrases, lists in another order; undefined if no rule applies. */
export function paraphrase(text: string, random: Random): string | undefined {
  let reworded = reorderLists(text, random);
  for (const [phrase, other] of PHRASES) reworded = reworded.replace(phrase, other);
  if (reworded === text) return undefined;
  return reworded.replace(/(^|[.!?:]\s+)([a-z])/g, (_, before: string, first: string) =>
    before.endsWith(": ") ? `${before}${first}` : `${before}${first.toUpperCase()}`,
  );
}

/** Reorders lists of three or more things, after a colon or a verb. */
function reorderLists(text: string, random: Random): string {
  return text.replace(/(: | see | notice )([^.:\n]+,[^.:\n]+)(?=[.\n]|$)/g, (_, before, list) => {
    const items = String(list)
      .split(/,\s*(?:and )?/)
      .filter((item) => item !== "");
    const last = items.length > 2 && / and /.test(String(list)) ? ", and " : ", ";
    const order = random.shuffle(items);
    return `${String(before)}${order.slice(0, -1).join(", ")}${last}${order.at(-1)}`;
  });
}

/** Things with a number, like "drawer 2": the facts of text worlds. */
const THING = /\b[a-z]+ \d+\b/gi;
const WORD = /\b[\p{L}\d]{4,}\b/gu;

/**
 * The text with one fact replaced by one from another state; undefined if there is nothing to
 * replace.
 */
export function alter(text: string, states: readonly string[], random: Random): string | undefined {
  for (const pattern of [THING, WORD]) {
    const own = [...text.matchAll(pattern)];
    const foreign = [...random.pick(states).matchAll(pattern)]
      .map(([found]) => found)
      .filter((found) => !text.includes(found));
    if (own.length === 0 || foreign.length === 0) continue;
    const { index, 0: found } = random.pick(own);
    return `${text.slice(0, index)}${random.pick(foreign)}${text.slice(index + found.length)}`;
  }
  return undefined;
}

/** Kinds of pairs that a reward should accept, and kinds that it should not. */
export const pairKinds = {
  right: ["same", "paraphrase"],
  wrong: ["altered", "other action", "other moment"],
} as const;

/** The kind of a pair. */
export type PairKind = (typeof pairKinds)["right" | "wrong"][number];

/** A real state and another one. */
export interface LabelledPair {
  readonly kind: PairKind;
  readonly real: string;
  readonly predicted: string;
}

/** How to collect pairs. */
interface StatePairOptions {
  readonly split: string;
  /** How many tasks to play, and the maximum number of steps in each. */
  readonly tasks: number;
  readonly steps: number;
  readonly seed: number;
  /** Custom paraphrases, instead of the rule-based ones. */
  readonly paraphrases?: readonly { readonly state: string; readonly paraphrase: string }[];
}

interface Moment {
  readonly real: string;
  /** What another action would have led to. */
  readonly otherwise?: string;
}

/** Plays some episodes and pairs their states. */
export async function statePairs(
  environment: Environment,
  options: StatePairOptions,
): Promise<readonly LabelledPair[]> {
  const moments = await playMoments(environment, options);
  const states = [...new Set(moments.map(({ real }) => real))];
  if (states.length < 2) {
    throw new UserError(
      `${environment.name} showed ${states.length} different states in ${options.tasks} tasks: a threshold needs at least two. Play more tasks, or steps.`,
    );
  }
  const random = createRandom(mixSeed(options.seed, "pairs"));
  const pairs: LabelledPair[] = [];
  const add = (kind: PairKind, real: string, predicted: string | undefined): void => {
    if (predicted !== undefined && predicted !== real) pairs.push({ kind, real, predicted });
  };
  for (const { real, otherwise } of moments) {
    add("same", real, respell(real));
    if (options.paraphrases === undefined) add("paraphrase", real, paraphrase(real, random));
    add("altered", real, alter(real, states, random));
    add("other action", real, otherwise);
    add("other moment", real, random.pick(states));
  }
  for (const one of options.paraphrases ?? []) add("paraphrase", one.state, one.paraphrase);
  return pairs;
}

async function playMoments(
  environment: Environment,
  { split, tasks, steps, seed }: StatePairOptions,
): Promise<readonly Moment[]> {
  const moments: Moment[] = [];
  for (const [number, task] of environment.tasks(split).slice(0, tasks).entries()) {
    const random = createRandom(mixSeed(seed, number));
    const env = environment.create();
    try {
      await env.reset(task, mixSeed(seed, number));
      for (let step = 0; step < steps; step++) {
        const action = await chooseAction(environment, env, random);
        const otherwise = await otherOutcome(env, action, random);
        const { observation, done } = await env.step(action);
        moments.push({ real: observation, ...(otherwise !== undefined && { otherwise }) });
        if (done) break;
      }
    } finally {
      if (isRemote(env)) await env.close();
    }
  }
  return moments;
}

/** Mostly the expert's action, so that episodes make progress; otherwise any admissible action. */
async function chooseAction(
  { expert, name }: Environment,
  env: Env | RemoteEnv,
  random: Random,
): Promise<string> {
  const admissible = env.admissibleActions?.() ?? [];
  const stray = admissible.length > 0 && random.next() < 0.3;
  if (expert !== undefined && !stray) {
    if (isRemote(env)) await env.prepareTeacher?.();
    return expert(env);
  }
  if (admissible.length === 0) {
    throw new UserError(
      `${name} has neither an expert nor a list of actions to choose from: it cannot be played here.`,
    );
  }
  return random.pick(admissible);
}

/** What another action would have led to, if the world can be copied and lists its actions. */
async function otherOutcome(
  env: Env | RemoteEnv,
  action: string,
  random: Random,
): Promise<string | undefined> {
  const others = (env.admissibleActions?.() ?? []).filter((other) => other !== action);
  const copy = others.length === 0 ? undefined : await env.clone?.();
  if (copy === undefined) return undefined;
  try {
    return (await copy.step(random.pick(others))).observation;
  } finally {
    if (isRemote(copy)) await copy.close();
  }
}

/** Distances of pairs, by kind. */
export type Distances = Readonly<Record<PairKind, readonly number[]>>;

/** The effect of a threshold. */
export interface ThresholdEffect {
  readonly threshold: number;
  /** Share of each kind that it accepts; NaN if there was none. */
  readonly accepted: Readonly<Record<PairKind, number>>;
  /**
   * Balanced accuracy: the mean of what is accepted among right kinds and rejected among wrong
   * kinds.
   */
  readonly accuracy: number;
}

/** Maximum share of altered states that a strict threshold accepts. */
const STRICT_SHARE = 0.05;

/** The threshold with the best accuracy, and the largest one that accepts few altered states. */
export function proposeThresholds(distances: Distances): {
  readonly best: ThresholdEffect;
  readonly strict: ThresholdEffect;
} {
  const all = [...new Set(Object.values(distances).flat())].sort((a, b) => a - b);
  // Nothing changes between two neighbours, so their midpoint represents the interval.
  const candidates = all.map((distance, i) => (distance + (all[i + 1] ?? distance + 1e-3)) / 2);
  const effects = candidates
    .filter((threshold) => threshold > 0)
    .map((threshold) => effectOf(distances, threshold));
  if (effects.length === 0) {
    throw new Error("a threshold needs pairs of states that differ, and there are none");
  }
  const best = effects.reduce((a, b) => (b.accuracy > a.accuracy ? b : a));
  const careful = effects.filter(({ accepted }) => !(accepted.altered > STRICT_SHARE));
  return { best, strict: careful.at(-1) ?? effects[0]! };
}

/** Evaluates a threshold. */
export function effectOf(distances: Distances, threshold: number): ThresholdEffect {
  const share = (kind: PairKind): number => {
    const of = distances[kind];
    return of.filter((distance) => distance < threshold).length / of.length;
  };
  const kinds = [...pairKinds.right, ...pairKinds.wrong];
  const accepted = Object.fromEntries(kinds.map((kind) => [kind, share(kind)])) as Record<
    PairKind,
    number
  >;
  const mean = (of: readonly PairKind[]): number => {
    const known = of.map((kind) => accepted[kind]).filter((value) => !Number.isNaN(value));
    return known.reduce((sum, value) => sum + value, 0) / Math.max(known.length, 1);
  };
  const accuracy = (mean(pairKinds.right) + 1 - mean(pairKinds.wrong)) / 2;
  return { threshold, accepted, accuracy };
}
