/** Placeholder for the expression language; replaced by its own commit. */
export interface Objective {
  readonly loss: unknown;
}
