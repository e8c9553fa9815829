/**
 * When the files of watched runs are looked at: for all pages at the same moments, every two
 * seconds, or so seldom that it takes half a percent of one processor.
 */

const LEAST_MS = 2_000;
/** A page that is this late is not live any more: in very large folders, looking costs more. */
const MOST_MS = 15_000;
/** The share of a processor that looking may take. */
const SHARE = 0.005;

/** Calls everybody who has joined, again and again. */
export interface Pulse {
  /** Joins; the function that is returned leaves. */
  join(look: () => void): () => void;
}

/** A pulse that beats as long as somebody listens. */
export function createPulse(): Pulse {
  const looks = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;
  const beat = (): void => {
    const before = process.cpuUsage();
    for (const look of [...looks]) look();
    const { user, system } = process.cpuUsage(before);
    timer = looks.size === 0 ? undefined : setTimeout(beat, pauseAfter((user + system) / 1000));
  };
  return {
    join(look) {
      looks.add(look);
      timer ??= setTimeout(beat, LEAST_MS);
      return () => {
        looks.delete(look);
        if (looks.size > 0) return;
        clearTimeout(timer);
        timer = undefined;
      };
    },
  };
}

/** How long to wait after a look that took so many milliseconds of a processor. */
export const pauseAfter = (took: number): number =>
  Math.min(MOST_MS, Math.max(LEAST_MS, took / SHARE));
