/** A KL jump: one update moved the policy far from its reference. */
import { type Alarm, median, shown, valuesOf } from "./alarm.js";

/** In nats per token: from a KL near 0, any growth is many times as much, and harmless. */
const HARMLESS = 0.05;

/** Raised when the KL to the reference is many times what it was before. */
export const klAlarm: Alarm = {
  name: "kl",
  summary: "the KL to the reference jumped",
  reads: ["policy.kl"],
  check(lines, { kl: factor, window }) {
    const now = lines.at(-1)?.["policy.kl"];
    const before = valuesOf(lines.slice(0, -1), "policy.kl").slice(-window);
    if (factor === 0 || now === undefined || before.length < window) return undefined;
    const usual = median(before);
    return now > HARMLESS && now > factor * usual
      ? `policy.kl jumped from ${shown(usual)} to ${shown(now)} nats per token: the policy left its reference at once. Try a lower learning rate or gradClipNorm`
      : undefined;
  },
};
