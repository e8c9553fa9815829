/** Policies that choose at random. The same seeds give the same choices. */
import { createRandom, mixSeed } from "../../random.js";
import type { Policy, Reply, Situation } from "../policy.js";

/** Chooses uniformly among the admissible actions. */
export function randomPolicy(seed = 0): Policy {
  return {
    name: "random",
    batch: 1,
    act: async (situations) =>
      situations.map((situation) => {
        const { admissible } = situation;
        if (admissible === undefined || admissible.length === 0) {
          throw new Error(
            `The random policy chooses among the admissible actions, but the environment of task ${situation.task.id} ${
              admissible === undefined ? "does not list them" : "lists none at this step"
            }. Use another policy.`,
          );
        }
        const action = createRandom(mixSeed(seed, situation.seed)).pick(admissible);
        return { response: situation.format(action) };
      }),
  };
}

/**
 * ε-greedy: follows `policy`, but with probability `epsilon` takes a random action and marks it in
 * the record, so that episodes also show how to continue from states the policy itself would never
 * reach. Half of the random actions are admissible ones, or, where nobody lists them, the policy's
 * own with one word mistaken; the other half repeat an earlier action of the episode and are often
 * invalid: learners run into invalid actions and must see how to recover.
 */
export function epsilonPolicy(policy: Policy, epsilon: number, seed = 0): Policy {
  if (!(epsilon >= 0 && epsilon <= 1)) {
    throw new Error(`epsilon must be a probability between 0 and 1, not ${epsilon}.`);
  }
  const random = repeating(straying(policy, seed), seed);
  return {
    ...policy,
    name: `${policy.name}+${epsilon}random`,
    act: async (situations, signal) => {
      const atRandom = situations.map(
        (one) => createRandom(mixSeed(seed, "stray", one.seed)).next() < epsilon,
      );
      const choose = async (by: Policy, isRandom: boolean): Promise<Iterator<Reply>> => {
        const asked = situations.filter((_, at) => atRandom[at] === isRandom);
        const replies = asked.length === 0 ? [] : await by.act(asked, signal);
        return replies[Symbol.iterator]();
      };
      const own = await choose(policy, false);
      const chance = await choose(random, true);
      return atRandom.map((isRandom) =>
        isRandom
          ? { ...(chance.next().value as Reply), strayed: true }
          : (own.next().value as Reply),
      );
    },
  };
}

/** A random action; where none are listed, the policy's with one of its words mistaken for another. */
function straying(policy: Policy, seed: number): Policy {
  const random = randomPolicy(seed);
  return {
    ...policy,
    async act(situations, signal) {
      const replies: Reply[] = [];
      for (const situation of situations) {
        const bare = { ...situation, format: (action: string) => action };
        const [reply] =
          situation.admissible !== undefined
            ? await random.act([situation], signal)
            : (await policy.act([bare], signal)).map(({ response }) => ({
                response: situation.format(mistaken(response, situation, seed)),
              }));
        replies.push(reply!);
      }
      return replies;
    },
  };
}

const WORD = /[\p{L}\p{N}_]+/gu;

/** The action with one word replaced by another that its policy has read. */
function mistaken(action: string, { goal, observation, seed: own }: Situation, seed: number) {
  const random = createRandom(mixSeed(seed, "mistaken", own));
  const words = [...action.matchAll(WORD)];
  if (words.length === 0) return action;
  const { 0: word, index } = random.pick(words);
  const others = `${goal} ${observation}`.match(WORD)?.filter((one) => one !== word) ?? [];
  if (others.length === 0) return action;
  return action.slice(0, index) + random.pick(others) + action.slice(index + word.length);
}

/**
 * Half of the time an action taken earlier in the episode, if there is one; otherwise the policy's.
 */
function repeating(policy: Policy, seed: number): Policy {
  return {
    ...policy,
    act: async (situations, signal) => {
      const replies = await policy.act(situations, signal);
      return situations.map((situation, at) => {
        const random = createRandom(mixSeed(seed, "again", situation.seed));
        const { steps } = situation;
        return random.next() < 0.5 || steps.length === 0
          ? (replies[at] as Reply)
          : { response: situation.format(random.pick(steps).action) };
      });
    },
  };
}
