/** The trackers of a run that is being recorded: told of everything, waited for at the end only. */

import type { Episode } from "@pawl/core/rollout/episode.js";
import type { AlarmRecord } from "@pawl/core/runs/alarms-file.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { requireConsent } from "@pawl/core/trust/consent.js";
import { leftOutNotice } from "@pawl/core/trust/secret-settings.js";
import { followRun } from "./follow.js";
import { parseTarget, type TrackOptions, trackOptions } from "./options.js";
import { openSource } from "./source.js";

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
