/** The record of what happened: steps, episodes, groups. Plain data, as it is written to a run folder. */
import type { Task } from "../envs/env.js";
import type { PromptPiece } from "../text/prompt.js";
import type { Sequence } from "../text/sequence.js";

/** One decision and what it did: prompt, response, action, observation, reward. */
export interface Step {
  /** What the policy read, piece by piece with each piece's origin. */
  readonly prompt: readonly PromptPiece[];
  /** What the policy wrote. */
  readonly response: string;
  /** The action taken out of the response and sent to the environment. */
  readonly action: string;
  /** Whether the response had the form that was asked for, and came to its end. */
  readonly wellFormed: boolean;
  /** The response was cut off at its longest length, and so is not well-formed. */
  readonly cut?: true;
  /** Whether it was well-formed and the environment could carry the action out. */
  readonly valid: boolean;
  /** What the environment answered. */
  readonly observation: string;
  readonly reward: number;
  /** The policy was made to act at random here: nothing to imitate. */
  readonly strayed?: true;
  /** Token ids with spans and log-probabilities, where the policy is a model of ours. */
  readonly sequence?: Sequence;
}

/**
 * Why an episode ended: the environment said so, the step limit, too many refused actions in a row, a prompt
 * longer than the policy can read, or something broke. A broken episode is never counted as a failure of
 * the policy.
 */
export type StopReason = "done" | "step-limit" | "stuck" | "context-limit" | "broken";

/** One attempt at a task. */
export interface Episode {
  readonly task: Task;
  /** Number of the group in its run: episodes of one task belong to one group. */
  readonly group: number;
  /** Number of the episode in its group. */
  readonly attempt: number;
  readonly seed: number;
  readonly policy: string;
  readonly goal: string;
  readonly firstObservation: string;
  /** What a world model may be told of the initial state. */
  readonly initialContext?: string;
  readonly steps: readonly Step[];
  /** Sum of the rewards, without penalties. */
  readonly return: number;
  readonly success: boolean;
  readonly score?: number;
  readonly stop: StopReason;
  /** What broke, where `stop` is `broken`. */
  readonly error?: string;
}

/** The episodes of one task. */
export interface Group {
  readonly index: number;
  readonly task: Task;
  readonly episodes: readonly Episode[];
}
