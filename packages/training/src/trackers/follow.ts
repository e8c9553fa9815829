/**
 * Sends a run to its trackers while it goes on.
 *
 * The run never waits: it says that there is more, and every tracker is served on its own. One that
 * does not answer is tried again, less and less often; one that refuses is left alone. What a tracker
 * has received is remembered beside the metrics, so that the rest can be sent at any time.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import type { AlarmRecord } from "@pawl/core/runs/alarms-file.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { requireConsent } from "@pawl/core/trust/consent.js";
import { leftOutNotice } from "@pawl/core/trust/secret-settings.js";
import { z } from "zod";
import { parseTarget, type Target, type TrackOptions, trackOptions } from "./options.js";
import { TrackerError } from "./post.js";
import { openSource, type Source } from "./source.js";
import type { Tracker } from "./tracker.js";

/** What a run tells its trackers, after it has recorded it. */
export interface LiveTracking {
  line(line: MetricsLine): void;
  alarm(alarm: AlarmRecord): void;
  episodes(episodes: readonly Episode[]): void;
  /** Sends the rest, for a moment at most; the run's end is in its manifest. */
  end(): Promise<void>;
}

const NONE: LiveTracking = {
  line: () => undefined,
  alarm: () => undefined,
  episodes: () => undefined,
  end: async () => undefined,
};

/** Starts to follow a run; lines that it recorded before it was resumed are sent if they were missed. */
export function trackLive(
  folder: string,
  options: TrackOptions | undefined,
  how: {
    readonly groupsPerUpdate: number;
    readonly onProblem?: ((message: string) => void) | undefined;
  },
): LiveTracking {
  if (options === undefined || options.to.length === 0) return NONE;
  requireConsent(trackOptions, options, "track");
  const { traces, project, to } = options;
  const { groupsPerUpdate, onProblem = () => undefined } = how;
  const leftOut = leftOutNotice(folder, readManifest(folder).config);
  if (leftOut !== undefined) onProblem(leftOut);
  const source = openSource(folder, project, { traces, groupsPerUpdate });
  const environment = process.env;
  const follower = followRun(source, to.map(parseTarget), { folder, environment, onProblem });
  return {
    line(line) {
      source.addLine(line);
      follower.more();
    },
    alarm(alarm) {
      source.addAlarm(alarm);
      follower.more();
    },
    episodes: source.addEpisodes,
    end: () => follower.end(readManifest(folder).status),
  };
}

/** What a tracker has received. */
interface Cursor {
  readonly lines: number;
  readonly alarms: number;
}

const count = z.int().min(0);
const fileSchema = z.object({
  /** The run that it is about; a copy of a run starts anew. */
  run: z.string(),
  trackers: z.record(z.string(), z.object({ lines: count, alarms: count })),
});

const NOTHING: Cursor = { lines: 0, alarms: 0 };

/** The cursors of a run. */
interface Cursors {
  get(tracker: string): Cursor;
  set(tracker: string, cursor: Cursor): void;
  /** Nothing was sent, as far as we know. */
  forget(tracker: string): void;
}

/** Opens the cursors of a run; a file that cannot be read means that nothing was sent. */
export function openCursors(folder: string, run: string): Cursors {
  const path = join(folder, "trackers.json");
  const read = () => {
    try {
      const file = existsSync(path)
        ? fileSchema.parse(JSON.parse(readRegularText(path)))
        : undefined;
      return file?.run === run ? file.trackers : {};
    } catch {
      // Sending everything again does no harm.
      return {};
    }
  };
  const set = (tracker: string, cursor: Cursor): void => {
    const content = { run, trackers: { ...read(), [tracker]: cursor } };
    writeSmallFile(path, `${JSON.stringify(content)}\n`);
  };
  return {
    get: (tracker) => read()[tracker] ?? NOTHING,
    set,
    forget: (tracker) => set(tracker, NOTHING),
  };
}

/** Lines per request: enough to catch up quickly, few enough for a request's size. */
const LINES = 25;

/** How long to wait for trackers. */
export interface FollowTimes {
  /** Before the first retry; doubles each time. */
  readonly retryMs: number;
  readonly mostRetryMs: number;
  /** At the end of a run. */
  readonly graceMs: number;
}

const TIMES: FollowTimes = { retryMs: 1000, mostRetryMs: 60_000, graceMs: 5000 };

/** A run that is being followed. */
export interface Follower {
  /** There is more to send; returns at once. */
  more(): void;
  /** Sends what is left, for a moment at most, and says what could not be sent. */
  end(status: string): Promise<void>;
}

/** Follows a run for these trackers. */
export function followRun(
  source: Source,
  targets: readonly Target[],
  options: {
    readonly folder: string;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly onProblem: (message: string) => void;
    readonly times?: Partial<FollowTimes>;
  },
): Follower {
  const { folder, environment, onProblem } = options;
  const times = { ...TIMES, ...options.times };
  const cursors = openCursors(folder, source.run.id);
  const stop = new AbortController();
  const news = createBell();
  const end = createBell();
  let ended: string | undefined;

  const received = ({ name }: Target): Cursor => cursors.get(cursorName(name, source));
  const serve = async (target: Target): Promise<void> => {
    const tracker = target.open(environment);
    let failures = 0;
    let reached = received(target);
    for (;;) {
      const last = ended;
      const next = news.rings();
      try {
        await sendRest(source, tracker, target.name, cursors, stop.signal);
        if (last !== undefined) return await tracker.finish?.(source.run, last, stop.signal);
        failures = 0;
        await next;
      } catch (error) {
        if (stop.signal.aborted) return;
        // It answered since the last failure: a new outage.
        const now = received(target);
        if (now.lines !== reached.lines || now.alarms !== reached.alarms) failures = 0;
        reached = now;
        const isOver = !(error instanceof TrackerError && error.again);
        const later = isOver
          ? `pawl track ${folder} --to ${target.name} sends it later`
          : "what the tracker misses is sent when it answers again";
        if (failures === 0)
          onProblem(`${target.name}: ${(error as Error).message}. The run goes on; ${later}`);
        if (isOver) return;
        // At the end there is no time for long pauses.
        const pauseMs = times.retryMs * (last === undefined ? 2 ** failures : 1);
        failures += 1;
        const pause = sleep(Math.min(pauseMs, times.mostRetryMs), undefined, { ref: false });
        await (last === undefined ? Promise.race([pause, end.rings()]) : pause);
      }
    }
  };
  const serving = targets.map(async (target) => {
    // Whatever happens here must not reach the run.
    await serve(target).catch((error: unknown) =>
      onProblem(`${target.name}: ${(error as Error).message}`),
    );
  });
  return {
    more: news.ring,
    async end(status) {
      ended = status;
      end.ring();
      news.ring();
      const { signal } = stop;
      const late = sleep(times.graceMs, undefined, { signal }).catch(() => undefined);
      await Promise.race([Promise.all(serving), late]);
      stop.abort();
      for (const target of targets) {
        const { name } = target;
        const cursor = received(target);
        const missed = source.lines - cursor.lines;
        if (!isSent(source, cursor))
          onProblem(
            `${name} has not received ${missed > 0 ? `the last ${missed} lines of metrics` : "the last alarms"}: pawl track ${folder} --to ${name} sends them`,
          );
      }
    },
  };
}

/** Wakes those who wait for it. */
function createBell(): { ring(): void; rings(): Promise<void> } {
  const waiting = new Set<() => void>();
  return {
    ring() {
      for (const resolve of waiting) resolve();
      waiting.clear();
    },
    rings: () => new Promise((resolve) => void waiting.add(resolve)),
  };
}

/** The same run may be sent to several projects of a tracker. */
export const cursorName = (tracker: string, { run }: Source): string => `${tracker} ${run.project}`;

const isSent = (source: Source, { lines, alarms }: Cursor): boolean =>
  lines === source.lines && alarms === source.alarms;

const add = (a: Cursor, b: Cursor): Cursor => ({
  lines: a.lines + b.lines,
  alarms: a.alarms + b.alarms,
});

/** Sends everything that a tracker has not received yet; returns how much that was. */
export async function sendRest(
  source: Source,
  tracker: Tracker,
  target: string,
  cursors: Cursors,
  signal: AbortSignal,
): Promise<Cursor> {
  const name = cursorName(target, source);
  let sent: Cursor = { lines: 0, alarms: 0 };
  for (;;) {
    const { lines, alarms } = cursors.get(name);
    // A resumed run repeats what came after its checkpoint.
    const at = { lines: Math.min(lines, source.lines), alarms: Math.min(alarms, source.alarms) };
    const batch = await source.after(at.lines, at.alarms, LINES);
    if (batch.lines.length === 0 && batch.alarms.length === 0) {
      if (at.lines !== lines || at.alarms !== alarms) cursors.set(name, at);
      return sent;
    }
    await tracker.send(source.run, batch, signal);
    const more = { lines: batch.lines.length, alarms: batch.alarms.length };
    sent = add(sent, more);
    cursors.set(name, add(at, more));
  }
}
