/** One kind of damage at one place of a run folder. */
export interface Damage {
  readonly kind: string;
  /** The file or folder, relative to the run. */
  readonly file: string;
  readonly what: string;
  /** The change is a wish: other numbers are right. */
  readonly isMeant?: boolean;
  /** A process holds the folder: a resume must be refused. */
  readonly isHeld?: boolean;
  /** A resume may be refused without that `pawl check` finds anything. */
  readonly mayRefuse?: boolean;
  apply(run: string): void;
}
