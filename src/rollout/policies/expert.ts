/** The scripted players of an environment as policies: they see the true state of the world. */
import type { Teacher } from "../../envs/env.js";
import type { Policy } from "../policy.js";

/** Plays an environment's scripted expert, which inspects the state of its world. */
export function expertPolicy(expert: Teacher, name = "expert"): Policy {
  return {
    name,
    batch: 1,
    act: async (situations) =>
      situations.map((situation) => ({ response: situation.format(expert(situation.env)) })),
  };
}
