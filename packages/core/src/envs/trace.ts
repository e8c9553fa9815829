/** The contents of recorded traces. */

/** A recorded state of a world. */
export interface TraceState {
  readonly obs: string;
  readonly admissible?: readonly string[] | undefined;
  readonly done?: boolean | undefined;
  readonly won?: boolean | undefined;
}

/** A world as in recorded traces, which may differ from what a policy is shown. */
export interface TraceWorld {
  start(): TraceState;
  step(action: string): TraceState;
}

/** A place where an environment's response differs from the record. */
export interface Mismatch {
  readonly where: string;
  readonly expected: unknown;
  readonly found: unknown;
}

/** The outcome of a replay. */
export interface ReplayResult {
  readonly traces: number;
  /** How many states were compared. */
  readonly states: number;
  readonly mismatches: readonly Mismatch[];
  /** What to know about the comparison, such as which version was compared. */
  readonly notes?: readonly string[];
}
