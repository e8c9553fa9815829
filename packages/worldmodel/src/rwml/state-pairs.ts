/**
 * Pairs of states that mean the same and pairs that do not, from an environment: what a threshold
 * must separate. Right pairs: the same text with different spacing and case, and paraphrases. Wrong
 * pairs: one fact altered, the result of another action, and the observation of another moment.
 */
import { type Env, type Environment, isRemote, type RemoteEnv } from "@pawl/core/envs/env.js";
import { UserError } from "@pawl/core/errors.js";
import { createRandom, mixSeed, type Random } from "@pawl/core/random.js";
import { alter, paraphrase, respell } from "./rewording.js";

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
export interface StatePairOptions {
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
