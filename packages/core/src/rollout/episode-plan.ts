import type { Environment, Task } from "../envs/env.js";
import type { PromptStyle } from "../text/prompt.js";

/** Which episode to run, and under which limits. */
export interface EpisodePlan {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly task: Task;
  readonly group: number;
  readonly attempt: number;
  readonly seed: number;
  readonly stepLimit: number;
  /** The episode ends after this many invalid actions in a row. */
  readonly invalidActionLimit: number;
  readonly policy: string;
  /** Interrupts a world that answers later. */
  readonly signal?: AbortSignal | undefined;
  /** Breaks the episode, with its reason: it has taken too long. */
  readonly late?: AbortSignal | undefined;
}
