/** The scripted players of an environment as policies: they see the true state of the world. */
import type { Expert } from "../../envs/env.js";
import type { Policy } from "../policy.js";

/**
 * Plays an environment's scripted expert. It needs a world in this process, because it inspects its
 * state.
 */
export function expertPolicy(expert: Expert, name = "expert"): Policy {
  return {
    name,
    batch: 1,
    act: async (situations) =>
      situations.map((situation) => {
        const { env, task } = situation;
        if (!("clone" in env)) {
          throw new Error(
            `The ${name} needs the true state of the world, and task ${task.id} runs behind a server. Use another policy for remote environments.`,
          );
        }
        return { response: situation.format(expert(env)) };
      }),
  };
}
