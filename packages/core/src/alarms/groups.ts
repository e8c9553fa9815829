/** All groups equal: no episode was better than the others of its group, so nothing is learnt. */
import type { MetricsLine } from "../runs/metrics-file.js";
import { type Alarm, mean, REWARDS, shown, valuesOf } from "./alarm.js";

/** Raised when several updates in a row had no group with an advantage in it. */
export const groupsAlarm: Alarm = {
  name: "groups",
  summary: "all groups have equal rewards, so that there is nothing to learn from",
  reads: ["train.equalGroups", "rwml.skipped", ...REWARDS],
  check(lines, { groups: updates }) {
    const recent = lines.slice(-updates);
    if (updates === 0 || recent.length < updates || !recent.every(isEqual)) return undefined;
    const reward = mean(valuesOf(recent, ...REWARDS));
    return `for ${updates} update${updates === 1 ? "" : "s"} every group had equal rewards (${shown(reward)} in the mean), so the policy learnt nothing. Choose tasks that succeed sometimes, larger groups, or a higher temperature`;
  },
};

const isEqual = (line: MetricsLine): boolean =>
  line["train.equalGroups"] === 1 || line["rwml.skipped"] === 1;
