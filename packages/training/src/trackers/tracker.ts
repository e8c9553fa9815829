/** What a tracker is: a place outside that shows a run's metrics, alarms and some of its episodes. */

import type { Episode } from "@pawl/core/rollout/episode.js";
import type { AlarmRecord } from "@pawl/core/runs/alarms-file.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";

/** A run as trackers know it. */
export interface TrackedRun {
  /** The same whenever and from wherever it is sent. */
  readonly id: string;
  readonly name: string;
  readonly project: string;
  readonly kind: string;
  /** Its settings by path, such as `optimizer.learningRate`. */
  readonly config: Readonly<Record<string, string | number | boolean>>;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

/** A line of metrics with its place in time, and the episodes sampled from its update. */
export interface TrackedLine {
  readonly step: number;
  /** Milliseconds since 1970: the start, plus the seconds that the lines so far report. */
  readonly time: number;
  readonly metrics: MetricsLine;
  readonly traces: readonly Trace[];
}

/** An alarm, at the time of its line. */
interface TrackedAlarm extends AlarmRecord {
  readonly time: number;
}

/** What is sent at once. */
export interface Batch {
  readonly lines: readonly TrackedLine[];
  readonly alarms: readonly TrackedAlarm[];
}

/** A connection to a tracker. Whatever it sends may be sent again without harm. */
export interface Tracker {
  send(run: TrackedRun, batch: Batch, signal: AbortSignal): Promise<void>;
  /** Says how the run ended, where the tracker has a place for that. */
  finish?(run: TrackedRun, status: string, signal: AbortSignal): Promise<void>;
}

/** A kind of tracker: `trackio=…`, `mlflow=…`. */
export interface TrackerKind {
  readonly name: string;
  /** What may stand after `NAME=`, for help. */
  readonly where: string;
  /** The variables that may hold its key. */
  readonly keys: readonly string[];
  /** Connects to nothing yet; throws if the place makes no sense. */
  open(where: string, environment: Readonly<Record<string, string | undefined>>): Tracker;
}

/** Metric names as trackers group them: by what stands before a slash. */
export function grouped(metrics: MetricsLine): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics)
      .filter(([name]) => name !== "update")
      .map(([name, value]) => [name.replace(".", "/"), value]),
  );
}

/** A conversation and what is known about it. */
export interface Trace {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

/** The goal and what was seen as the user's words, responses as the assistant's. */
export function traceOf(episode: Episode): Trace {
  const { goal, firstObservation, steps, stop } = episode;
  const [last] = steps.slice(-1);
  return {
    messages: [
      { role: "user", content: `${goal}\n\n${firstObservation}` },
      ...steps.flatMap((step) => [
        { role: "assistant", content: step.response },
        { role: "user", content: step.observation },
      ]),
    ],
    metadata: {
      task: episode.task.id,
      type: episode.task.type,
      group: episode.group,
      attempt: episode.attempt,
      return: episode.return,
      success: episode.success,
      stop,
      valid: last?.valid ?? true,
      ...(episode.error !== undefined && { error: episode.error }),
    },
  };
}
