/** Entropy collapse: the policy has stopped exploring before it has learnt the task. */
import { type Alarm, mean, movingMeans, shown, valuesOf } from "./alarm.js";

/** A policy that succeeds this often may be as certain as it likes. */
const SOLVED = 0.9;

/** Raised when actions have become nearly deterministic although many episodes fail. */
export const entropyAlarm: Alarm = {
  name: "entropy",
  summary: "the entropy of actions collapsed although many episodes fail",
  reads: ["policy.actionEntropy", "policy.entropy", "train.success", "rwml.reward"],
  check(lines, { entropy: share, window }) {
    const recent = lines.slice(-window);
    const entropies = valuesOf(lines, "policy.actionEntropy", "policy.entropy");
    if (share === 0 || entropies.length < 2 * window) return undefined;
    const successes = valuesOf(recent, "train.success", "rwml.reward");
    if (successes.length === 0 || mean(successes) >= SOLVED) return undefined;
    const means = movingMeans(entropies, window);
    const now = means.at(-1)!;
    const highest = Math.max(...means.slice(0, -1));
    return now < share * highest
      ? `the entropy of actions fell from ${shown(highest)} to ${shown(now)} nats, and ${shown(100 * mean(successes))} % succeed: the policy explores no more. Try a higher objective.entropy or temperature, or a lower learning rate`
      : undefined;
  },
};
