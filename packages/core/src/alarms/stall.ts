/** Rewards that stop rising; off by default, because a plateau may be all there is to reach. */
import { type Alarm, movingMeans, REWARDS, shown, valuesOf } from "./alarm.js";

/** Raised when rewards have not been better for many updates. */
export const stallAlarm: Alarm = {
  name: "stall",
  summary: "rewards stopped rising",
  reads: REWARDS,
  check(lines, { stall: updates, window }) {
    const means = movingMeans(valuesOf(lines, ...REWARDS), window);
    if (updates === 0 || means.length <= updates) return undefined;
    const best = Math.max(...means.slice(0, -updates));
    return Math.max(...means.slice(-updates)) <= best
      ? `rewards have not been better than ${shown(best)} for ${updates} updates`
      : undefined;
  },
};
