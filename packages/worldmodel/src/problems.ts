/** Problems with single items of a large data set: each is named, and they are counted by kind. */

/** Counts problems by kind. */
export interface Problems {
  add(kind: string, where: string): void;
  /** The count of each kind. */
  readonly counts: ReadonlyMap<string, number>;
}

/** This many of each kind are reported one by one; the others are only counted. */
const LISTED = 3;

/** An empty count; `tell` is called with the first few of each kind. */
export function createProblems(tell: (message: string) => void = () => undefined): Problems {
  const counts = new Map<string, number>();
  return {
    counts,
    add(kind, where) {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count <= LISTED) tell(`${where}: ${kind}; left out`);
      if (count === LISTED + 1) tell(`more of the same (${kind}) is counted and not listed`);
    },
  };
}
