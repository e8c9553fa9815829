/** Why episodes broke, below a table of results. */
import type { Tally } from "@pawl/core/rollout/tally.js";

/** More are summed up: a thousand reasons are one problem. */
const SHOWN = 5;
const LONGEST = 300;

/** One line per reason, the most frequent first; none if nothing broke. */
export function brokenLines({ broken }: Pick<Tally, "broken">): readonly string[] {
  const reasons = [...broken].sort(([, a], [, b]) => b - a);
  if (reasons.length === 0) return [];
  const rest = reasons.slice(SHOWN).reduce((sum, [, count]) => sum + count, 0);
  return [
    "",
    "broken episodes, by reason (they count in no rate):",
    ...reasons.slice(0, SHOWN).map(([reason, count]) => `  ${count} × ${shorten(reason)}`),
    ...(rest > 0 ? [`  ${rest} × other reasons`] : []),
  ];
}

function shorten(reason: string): string {
  return reason.length <= LONGEST ? reason : `${reason.slice(0, LONGEST)}…`;
}
