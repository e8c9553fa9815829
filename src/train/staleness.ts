/** Episodes that are learnt by later weights than those that drew them. */
import { usesCritic } from "../advantages/advantages.js";
import { ConfigError } from "../config/config-error.js";
import { carries } from "../rollout/pace.js";
import type { RlOptions } from "./rl-types.js";

/** Whether an update may learn from episodes that earlier weights drew. */
export const mayBeStale = ({ rollout, overlap }: Pick<RlOptions, "rollout" | "overlap">): boolean =>
  overlap > 0 || carries(rollout);

/** Throws if what learns cannot correct for that. */
export function checkStaleness(config: Pick<RlOptions, "overlap" | "rollout" | "advantage">): void {
  const { overlap, rollout } = config;
  if (overlap > 0 && carries(rollout))
    throw new ConfigError(
      "overlap 1 and rollout.stragglers carry: groups would be two updates old; set overlap to 0, or let stragglers break",
    );
  if (mayBeStale(config) && usesCritic(config.advantage))
    throw new ConfigError(
      `${overlap > 0 ? "overlap 1" : "rollout.stragglers carry"}: ppo's critic would learn the returns of an older policy, which nothing corrects for; choose another advantage, or ${overlap > 0 ? "set overlap to 0" : "let stragglers break"}`,
    );
}
