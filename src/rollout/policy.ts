/** A policy: what chooses actions. Experts, people, chat models and engines all have this shape. */
import type { Env, RemoteEnv, Task } from "../envs/env.js";
import type { PromptPiece } from "../text/prompt.js";
import type { Sequence } from "../text/sequence.js";
import type { Episode, Step } from "./episode.js";

/** Everything a policy may look at before it acts. */
export interface Situation {
  readonly task: Task;
  readonly group: number;
  readonly attempt: number;
  /** Number of this step, from 0. */
  readonly index: number;
  readonly goal: string;
  readonly observation: string;
  readonly firstObservation: string;
  /** The steps before this one. */
  readonly steps: readonly Step[];
  /** The actions that would be carried out now, where the environment lists them. */
  readonly admissible: readonly string[] | undefined;
  /** The rendered prompt. */
  readonly prompt: readonly PromptPiece[];
  /** Seed of this very decision: the same seed and situation give the same reply. */
  readonly seed: number;
  /** The true world, for experts and verifiers; a policy that learns must not look. */
  readonly env: Env | RemoteEnv;
  /** Wraps a bare action in the form the prompt asks for. */
  format(action: string): string;
}

/** What a policy answers. */
export interface Reply {
  readonly response: string;
  /** Where the policy is a model of ours: the step's token ids, once it is known what came of it. */
  readonly encode?: (observation: string, done: boolean) => Sequence;
  /** The prompt the policy really used, where it made its own (ReAct, Reflexion). */
  readonly prompt?: readonly PromptPiece[];
  /** The policy was made to act at random here. */
  readonly strayed?: true;
  /** The response was cut off at its longest length: not well-formed, whatever it says. */
  readonly cut?: true;
  /** The prompt was longer than the policy can read: the episode ends here, without this step. */
  readonly overflow?: boolean;
}

/** Chooses actions, for several episodes at a time. */
export interface Policy {
  readonly name: string;
  /**
   * How many episodes it wants to answer together: 1 for a chat model, all for an engine. Where it is 1, a call that
   * fails breaks the episode it was for; where it is more, it ends the rollout.
   */
  readonly batch: number;
  /** Whether the attempts of a group must run one after another, because it learns between them. */
  readonly sequential?: boolean;
  /** One reply per situation, in order. */
  act(situations: readonly Situation[], signal?: AbortSignal): Promise<readonly Reply[]>;
  /** Told of every finished episode, before the next attempt of its group starts. */
  finished?(episode: Episode, signal?: AbortSignal): Promise<void>;
}
