/** The expert as a policy: it looks at the true state of the world and always knows what to do. */
import type { Expert } from "../../envs/env.js";
import type { Policy } from "../policy.js";

/** Plays an environment's scripted expert; it needs a world in this process, because it looks inside. */
export function expertPolicy(expert: Expert): Policy {
  return {
    name: "expert",
    batch: 1,
    act: async (situations) =>
      situations.map((situation) => {
        const { env, task } = situation;
        if (!("clone" in env)) {
          throw new Error(
            `The expert looks at the true state of the world, and task ${task.id} runs behind a server. Use another policy for remote environments.`,
          );
        }
        return { response: situation.format(expert(env)) };
      }),
  };
}
