/**
 * Runs and episodes for tests of reports, with text that would break a page that does not escape
 * it.
 */
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { RUN_SCHEMA } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { ReportRun } from "./run-groups.js";

/** Text that is an attack if it is taken for markup, in elements, attributes and scripts. */
export const EVIL = `</script><script>throw new Error("escaped")</script>"'><img src=x onerror=throw(1)>&amp;`;

/** A recorded training run. */
export function reportRun(
  seed: number,
  loss: string,
  metrics: readonly MetricsLine[],
  changes: Readonly<Record<string, unknown>> = {},
): ReportRun {
  return {
    folder: `runs/${loss}-${seed}`,
    manifest: {
      schema: RUN_SCHEMA,
      kind: "train",
      status: "done",
      createdAt: "2026-11-15T10:00:00.000Z",
      seed,
      config: {
        seed,
        env: { name: "household" },
        advantage: { name: "grpo" },
        paw: { loss, rho: 0.2 },
        ...changes,
      },
      versions: {},
    },
    metrics,
    ended: "done",
  };
}

/** The metrics of a run that increase by the same amount at each update. */
export function risingMetrics(updates: number, slope: number): MetricsLine[] {
  return Array.from({ length: updates + 1 }, (_, i) => ({
    update: i - 1,
    ...(i > 0 && {
      "train.success": slope * i,
      "world.lambda": 1 - slope * i,
      "seconds.rollout": 2,
      "seconds.learn": 3,
    }),
    ...(i % 2 === 0 && { "eval.valid_seen.success": slope * i }),
  }));
}

/** An episode of one step. */
export function episode(
  group: number,
  attempt: number,
  changes: Partial<Episode> & { readonly step?: Partial<Step> } = {},
): Episode {
  const { step, ...rest } = changes;
  return {
    task: { id: "train/0", type: "pick", split: "train" },
    group,
    attempt,
    seed: 0,
    policy: "engine",
    goal: "Put a cup on a shelf.",
    firstObservation: "You see a cup.",
    steps: [
      {
        prompt: [],
        response: "take cup",
        action: "take cup",
        wellFormed: true,
        valid: true,
        observation: "You hold a cup.",
        reward: 0,
        ...step,
      },
    ],
    return: 0,
    success: false,
    stop: "done",
    ...rest,
  };
}
