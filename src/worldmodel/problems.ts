/** Problems with single items of a large whole: each is named, and they are counted by kind. */

/** Counts problems by kind. */
export interface Problems {
  add(kind: string, where: string): void;
  /** How many there were of each kind. */
  readonly counts: ReadonlyMap<string, number>;
}

/** Of each kind, this many are told one by one; the others are only counted. */
const TOLD = 3;

/** An empty count; `tell` hears of the first few of each kind. */
export function createProblems(tell: (message: string) => void = () => undefined): Problems {
  const counts = new Map<string, number>();
  return {
    counts,
    add(kind, where) {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count <= TOLD) tell(`${where}: ${kind}; left out`);
      if (count === TOLD + 1) tell(`more of the same (${kind}) is counted and not listed`);
    },
  };
}
