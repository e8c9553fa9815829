/** A clock for the phases of an update. */

/** Seconds per phase, and a method that ends a phase. */
export interface Clock<P extends string> {
  readonly laps: Readonly<Record<P, number>>;
  lap(phase: P): void;
}

/** Starts a clock; each phase starts when the previous one ends. */
export function createClock<P extends string>(phases: readonly P[]): Clock<P> {
  const laps = Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<P, number>;
  let last = performance.now();
  return {
    laps,
    lap(phase) {
      const now = performance.now();
      laps[phase] = (now - last) / 1000;
      last = now;
    },
  };
}
