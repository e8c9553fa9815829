/** A person as a policy. */
import type { Policy, Situation } from "../policy.js";

/** Asks a person for each action; the caller decides how (a terminal, a web page). */
export function humanPolicy(
  ask: (situation: Situation, signal?: AbortSignal) => Promise<string>,
): Policy {
  return {
    name: "human",
    batch: 1,
    async act(situations, signal) {
      const replies = [];
      for (const situation of situations) {
        replies.push({ response: situation.format(await ask(situation, signal)) });
      }
      return replies;
    },
  };
}
