/** The type of a sim-to-real reward: a measure of how close predicted states are to real ones. */

/** A predicted state and the real one, with the action between them, which a judge needs. */
export interface StatePair {
  readonly predicted: string;
  readonly real: string;
  readonly action: string;
}

/** Rewards in [0, 1], and how many of them are 0 because the measure itself gave no answer. */
interface Rewards {
  readonly values: readonly number[];
  readonly unreadable: number;
}

/** A measure of predictions. */
export interface StateReward {
  /** Its name, for errors and to check that a resumed run uses the same measure. */
  readonly name: string;
  rate(pairs: readonly StatePair[], signal?: AbortSignal): Promise<Rewards>;
}
