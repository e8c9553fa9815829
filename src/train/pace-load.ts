/** What the engine did during an update's rollout, as metrics. */
import type { PaceLoad } from "../rollout/scheduler.js";
import type { MetricsLine } from "../runs/metrics-file.js";

/** Its share of the time, its rows per call, and what was played at once. */
export function paceMetrics(load: PaceLoad | undefined): MetricsLine {
  if (load === undefined) return {};
  return {
    "pace.busy": load.busySeconds / load.seconds,
    "pace.rows": load.rows / load.calls,
    "pace.live": load.live,
    "pace.carried": load.carried,
  };
}
