/** A policy chooses actions. Experts, people, chat models and engines all have this interface. */
import type { ActingEngine } from "../engine/engine.js";
import type { Env, Environment, RemoteEnv, Task } from "../envs/env.js";
import type { PromptPiece, PromptStyle } from "../text/prompt.js";
import type { Sequence } from "../text/sequence.js";
import type { Tokenizer } from "../text/tokenizer.js";
import type { Tool } from "../text/tool.js";
import type { Candidate, Episode, EpisodePlan, Step } from "./episode.js";

/** Everything a policy may look at before it acts. */
export interface Situation {
  readonly task: Task;
  readonly group: number;
  readonly attempt: number;
  /** Index of this step, from 0. */
  readonly index: number;
  readonly goal: string;
  readonly observation: string;
  readonly firstObservation: string;
  /** The steps before this one. */
  readonly steps: readonly Step[];
  /** The actions that would be carried out now, if the environment lists them. */
  readonly admissible: readonly string[] | undefined;
  /** The tools to act with, if the environment offers any. */
  readonly tools?: readonly Tool[] | undefined;
  /** The rendered prompt. */
  readonly prompt: readonly PromptPiece[];
  /** Seed of this decision: the same seed and situation give the same reply. */
  readonly seed: number;
  /** The true world, for experts and verifiers; a policy that is trained must not look. */
  readonly env: Env | RemoteEnv;
  /** Wraps a bare action in the format that the prompt asks for. */
  format(action: string): string;
}

/** A policy's answer. */
export interface Reply {
  readonly response: string;
  /** If the policy is our own model: returns the step's token ids once its outcome is known. */
  readonly encode?: (observation: string, done: boolean) => Sequence;
  /** The prompt that was actually used, if the policy made its own (ReAct, Reflexion, a cut one). */
  readonly prompt?: readonly PromptPiece[];
  /** Why the action is not carried out: the policy reads this in place of the world's answer. */
  readonly refusal?: string;
  /** The policy was made to take a random action here. */
  readonly strayed?: true;
  /** The actions that it was chosen from. */
  readonly candidates?: readonly Candidate[];
  /** The response was truncated at its maximum length: not well-formed, whatever it says. */
  readonly cut?: true;
  /** The prompt was longer than the policy can read: the episode ends here, without this step. */
  readonly overflow?: boolean;
}

/** Chooses actions for several episodes at a time. */
export interface Policy {
  readonly name: string;
  /**
   * How many episodes it answers together: 1 for a chat model, all for an engine. With 1, a failing
   * call breaks its episode; with more, it ends the rollout.
   */
  readonly batch: number;
  /**
   * Whether the attempts of a group must run one after another, because the policy learns between
   * them.
   */
  readonly sequential?: boolean;
  /** One reply per situation, in order. */
  act(situations: readonly Situation[], signal?: AbortSignal): Promise<readonly Reply[]>;
  /**
   * Plays a whole episode, if the policy is a program that asks the model itself; then `act` is not
   * called. What goes wrong in the program is a broken episode; a failing engine is thrown.
   */
  play?(plan: EpisodePlan): Promise<Episode>;
  /** Callback after every finished episode, before the next attempt of its group starts. */
  finished?(episode: Episode, signal?: AbortSignal): Promise<void>;
}

/** A model that acts: how it samples, reads and writes. */
export interface ActingModel {
  readonly engine: ActingEngine;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  readonly sampling: { readonly maxTokens: number; readonly temperature: number };
  /** Episodes that are played together (default: all of them). */
  readonly batch?: number;
}

/** An environment that brings its own policy, such as an agent's program that asks the model itself. */
export interface SelfPlayed extends Environment {
  /** Whether an episode can go on from a state of another, by answering again as then. */
  readonly repeatable?: boolean;
  /** The model as a policy here. */
  policy(model: ActingModel): Policy;
}

/** Whether an environment brings its own policy. */
export function bringsPolicy(environment: Environment): environment is SelfPlayed {
  return "policy" in environment;
}
