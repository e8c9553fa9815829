/** What there is to send of a run: its lines, its alarms, and some episodes of each update. */
import { createHash } from "node:crypto";
import { basename, resolve } from "node:path";
import { setImmediate as pause } from "node:timers/promises";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { type AlarmRecord, readAlarms } from "@pawl/core/runs/alarms-file.js";
import type { Manifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { stepOf } from "@pawl/core/runs/tensorboard.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import { type Batch, type Trace, type TrackedLine, type TrackedRun, traceOf } from "./tracker.js";

/** Which episodes are sent. */
export interface TraceOptions {
  /** Episodes per update. */
  readonly traces: number;
  /** Groups that an update records; 0 if it records none. */
  readonly groupsPerUpdate: number;
}

/** A run's record, growing or complete. */
export interface Source {
  readonly run: TrackedRun;
  readonly lines: number;
  readonly alarms: number;
  addLine(line: MetricsLine): void;
  addAlarm(alarm: AlarmRecord): void;
  /** Remembers which episodes of an update to send. */
  addEpisodes(episodes: readonly Episode[]): void;
  /** What follows these lines and alarms, up to a number of lines. */
  after(lines: number, alarms: number, most: number): Promise<Batch>;
}

/** Updates whose episodes are kept in memory; those of others are read again when needed. */
const REMEMBERED = 50;

/** Reads what a run has recorded so far. */
export function openSource(folder: string, project: string, options: TraceOptions): Source {
  const { traces: count, groupsPerUpdate } = options;
  const recorded = openRun(folder, () => undefined);
  const run = trackedRun(folder, recorded.manifest, project);
  const lines: MetricsLine[] = [];
  const times: number[] = [];
  const alarms: AlarmRecord[] = readAlarms(folder, () => undefined);
  const remembered = new Map<number, Trace[]>();
  const updateOf = ({ group }: Episode): number => Math.floor(group / groupsPerUpdate);
  // Tasks are drawn at random, so the first groups are a sample.
  const isSampled = ({ group, attempt }: Episode): boolean =>
    groupsPerUpdate > 0 && attempt === 0 && group % groupsPerUpdate < count;
  const addLine = (line: MetricsLine): void => {
    const seconds = Object.entries(line)
      .filter(([name]) => name.startsWith("seconds."))
      .reduce((sum, [, value]) => sum + value, 0);
    lines.push(line);
    times.push((times.at(-1) ?? run.startedAt) + 1000 * seconds);
  };
  for (const line of recorded.metrics()) addLine(line);

  /** The traces of these updates, from memory or, if one is missing there, from the record. */
  const tracesOf = async (updates: readonly number[]): Promise<ReadonlyMap<number, Trace[]>> => {
    if (count === 0 || groupsPerUpdate === 0) return new Map();
    if (updates.every((update) => remembered.has(update))) return remembered;
    const found = new Map<number, Trace[]>();
    for (const episode of openRun(folder, () => undefined).episodes()) {
      // Reading a long record must not hold up the run.
      await pause();
      if (!isSampled(episode) || !updates.includes(updateOf(episode))) continue;
      const update = updateOf(episode);
      found.set(update, [...(found.get(update) ?? []), traceOf(episode)]);
    }
    return found;
  };

  return {
    run,
    get lines() {
      return lines.length;
    },
    get alarms() {
      return alarms.length;
    },
    addLine,
    addAlarm: (alarm) => void alarms.push(alarm),
    addEpisodes(episodes) {
      for (const episode of episodes.filter(isSampled)) {
        const update = updateOf(episode);
        remembered.set(update, [...(remembered.get(update) ?? []), traceOf(episode)]);
      }
      for (const update of remembered.keys())
        if (remembered.size > REMEMBERED) remembered.delete(update);
    },
    async after(from, alarmsFrom, most) {
      const some = lines.slice(from, from + most);
      const updates = some.flatMap(({ update = -1 }) => (update >= 0 ? [update] : []));
      const known = updates.length === 0 ? new Map<number, Trace[]>() : await tracesOf(updates);
      return {
        lines: some.map(
          (metrics, i): TrackedLine => ({
            step: stepOf(metrics),
            time: times[from + i]!,
            metrics,
            traces: known.get(metrics.update ?? -1) ?? [],
          }),
        ),
        alarms: alarms.slice(alarmsFrom).map((alarm) => {
          const line = lines.findIndex(({ update }) => update === alarm.update);
          return { ...alarm, time: times[line] ?? run.startedAt };
        }),
      };
    },
  };
}

function trackedRun(folder: string, manifest: Manifest, project: string): TrackedRun {
  const name = basename(resolve(folder));
  const { createdAt, kind, seed, config } = manifest;
  const id = createHash("sha256").update(JSON.stringify([name, createdAt, kind, seed]));
  return {
    id: id.digest("hex").slice(0, 16),
    name,
    project,
    kind,
    config: flat(withoutSecretSettings(config).settings),
    startedAt: Date.parse(createdAt),
  };
}

/** Settings by their path; lists as JSON. */
function flat(
  tree: Readonly<Record<string, unknown>>,
  prefix = "",
): Record<string, string | number | boolean> {
  return Object.assign(
    {},
    ...Object.entries(tree).map(([key, value]) => {
      const path = `${prefix}${key}`;
      if (value === null || value === undefined) return {};
      if (["string", "number", "boolean"].includes(typeof value)) return { [path]: value };
      return Array.isArray(value)
        ? { [path]: JSON.stringify(value) }
        : flat(value as Readonly<Record<string, unknown>>, `${path}.`);
    }),
  );
}
