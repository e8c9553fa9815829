/** The scripted players of an environment as policies: they see the true state of the world. */
import { isRemote, type Teacher } from "../../envs/env.js";
import type { Policy } from "../policy.js";

/** Plays an environment's scripted expert, which inspects the state of its world. */
export function expertPolicy(expert: Teacher, name = "expert"): Policy {
  return {
    name,
    batch: 1,
    act: (situations) =>
      Promise.all(
        situations.map(async ({ env, format }) => {
          if (isRemote(env)) await env.prepareTeacher?.();
          return { response: format(expert(env)) };
        }),
      ),
  };
}
