/** Rewards that stop coming. */
import { type Alarm, mean, REWARDS, shown } from "./alarm.js";

/** Raised when rewards have all but vanished after there were some. */
export const rewardAlarm: Alarm = {
  name: "reward",
  summary: "rewards stopped coming",
  reads: REWARDS,
  check(lines, { reward: share, window }) {
    const updates = lines.filter(({ update = -1 }) => update >= 0);
    if (share === 0 || updates.length < 2 * window) return undefined;
    // An update whose episodes all broke has no return: no reward came.
    const rewards = updates.map((line) => line[REWARDS[0]] ?? line[REWARDS[1]] ?? 0);
    // What came at every update of a window: rare successes come and go by chance.
    const before = rewards.slice(0, -window);
    const best = Math.max(
      ...before.slice(window - 1).map((_, i) => Math.min(...before.slice(i, i + window))),
    );
    const recent = rewards.slice(-window);
    return best > 0 && recent.every((value) => value < share * best)
      ? `rewards fell from ${shown(best)} to ${shown(mean(recent))} and stayed there for ${window} updates: the policy broke, or what gives rewards did`
      : undefined;
  },
};
