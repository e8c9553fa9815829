/** What the engine did during an update's rollout, as metrics. */
import type { Load } from "../rollout/gate.js";
import type { MetricsLine } from "../runs/metrics-file.js";

/** The load of an engine over some time. */
export interface PaceLoad extends Load {
  readonly seconds: number;
  /** Groups that were left to the next update. */
  readonly carried: number;
}

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
