/** What a sim-to-real reward is: a measure of how near predicted states are to real ones. */

/** A predicted state and the real one, with the action between, which a judge wants to know. */
export interface StatePair {
  readonly predicted: string;
  readonly real: string;
  readonly action: string;
}

/** Rewards in [0, 1], and how many of them are 0 because the measure itself gave no answer. */
export interface Rewards {
  readonly values: readonly number[];
  readonly unreadable: number;
}

/** A measure of predictions. */
export interface StateReward {
  /** What it is, for errors and to tell whether a resumed run measures as before. */
  readonly name: string;
  rate(pairs: readonly StatePair[], signal?: AbortSignal): Promise<Rewards>;
}
