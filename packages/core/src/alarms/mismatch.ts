/** Mismatch growth: samples come less and less from the weights that learn. */
import { type Alarm, shown, valuesOf } from "./alarm.js";

/** In nats: what rounding explains may vary by any factor. */
const ROUNDING = 1e-4;

/** Raised when sampling and learning have drifted apart. */
export const mismatchAlarm: Alarm = {
  name: "mismatch",
  summary: "sampling and learning compute ever more different log-probabilities",
  reads: ["mismatch.mean"],
  check(lines, { mismatch: factor }) {
    const now = lines.at(-1)?.["mismatch.mean"];
    const before = valuesOf(lines.slice(0, -1), "mismatch.mean");
    if (factor === 0 || now === undefined || before.length === 0) return undefined;
    const lowest = Math.min(...before);
    return now > ROUNDING && now > factor * lowest
      ? `mismatch.mean grew from ${shown(lowest)} to ${shown(now)} nats: the sampler may not receive new weights; see its log`
      : undefined;
  },
};
