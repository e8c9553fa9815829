/** Policies that choose by chance. The same seeds give the same choices. */
import { createRandom, mixSeed } from "../../random.js";
import type { Policy, Reply } from "../policy.js";

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
            `The random policy chooses among the admissible actions, and the environment of task ${situation.task.id} ${
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
 * Follows `policy`, but with probability `epsilon` acts at random and says so in the record: for episodes
 * that also show how to go on from states the policy itself would never get into.
 */
export function epsilonPolicy(policy: Policy, epsilon: number, seed = 0): Policy {
  if (!(epsilon >= 0 && epsilon <= 1)) {
    throw new Error(`epsilon is a probability between 0 and 1, not ${epsilon}.`);
  }
  const random = randomPolicy(seed);
  return {
    ...policy,
    name: `${policy.name}+${epsilon}random`,
    act: async (situations, signal) => {
      const strays = situations.map(
        (one) => createRandom(mixSeed(seed, "stray", one.seed)).next() < epsilon,
      );
      const choose = async (by: Policy, stray: boolean): Promise<Iterator<Reply>> => {
        const asked = situations.filter((_, at) => strays[at] === stray);
        const replies = asked.length === 0 ? [] : await by.act(asked, signal);
        return replies[Symbol.iterator]();
      };
      const own = await choose(policy, false);
      const chance = await choose(random, true);
      return strays.map((stray) =>
        stray ? { ...(chance.next().value as Reply), strayed: true } : (own.next().value as Reply),
      );
    },
  };
}
