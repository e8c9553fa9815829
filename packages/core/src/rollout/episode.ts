/** The record of what happened: steps, episodes, groups. Plain data, as written to a run folder. */
import type { Env, Environment, Task } from "../envs/env.js";
import { messageOf } from "../errors.js";
import type { PromptPiece, PromptStyle } from "../text/prompt.js";
import type { Sequence } from "../text/sequence.js";
import { withoutSecrets } from "../trust/secrets.js";

/** An action that was considered before a step (`choice/choosing-policy.ts`). */
export interface Candidate {
  readonly action: string;
  /** How many of the samples were this action. */
  readonly votes: number;
  /** What it was predicted to bring, cut with ` …`; absent where nothing was predicted. */
  readonly predicted?: string;
  /** How probable the model thinks that prediction. */
  readonly probability?: number;
  /** The predicted chance that it is refused. */
  readonly refused?: number;
  /** What a copy of the world answered. */
  readonly truth?: { readonly observation: string; readonly valid: boolean };
  /** log votes − β · logit refused: the largest was chosen. */
  readonly score: number;
  readonly chosen?: true;
}

/** One decision and its outcome: prompt, response, action, observation, reward. */
export interface Step {
  /** What the policy read, in pieces that each carry their origin. */
  readonly prompt: readonly PromptPiece[];
  /** What the policy wrote. */
  readonly response: string;
  /** The action parsed from the response and sent to the environment. */
  readonly action: string;
  /** Whether the response had the required format and was complete. */
  readonly wellFormed: boolean;
  /** The response was truncated at its maximum length, so it is not well-formed. */
  readonly cut?: true;
  /** Whether the response was well-formed and the environment could carry out the action. */
  readonly valid: boolean;
  /** What the environment answered. */
  readonly observation: string;
  readonly reward: number;
  /** When it was taken, counted from 0 in its episode, where steps are not listed in that order. */
  readonly time?: number;
  /** What it acted on, where that is not the observation of the step listed before. */
  readonly seen?: string;
  /** The action was refused and never reached the world: the observation says why. */
  readonly refused?: true;
  /** The policy was made to take a random action here: not to be imitated. */
  readonly strayed?: true;
  /** What was considered, if the policy chose among several actions, the most votes first. */
  readonly candidates?: readonly Candidate[];
  /** Token ids with spans and log-probabilities, if the policy is our own model. */
  readonly sequence?: Sequence;
  /** An agent's tool calls, with what came back for each. */
  readonly calls?: readonly {
    readonly tool: string;
    /** As JSON text. */
    readonly arguments: string;
    readonly result?: string;
  }[];
  /** How long an agent waited for the response. */
  readonly seconds?: number;
}

/**
 * Why an episode ended: the environment said so, the step limit, too many invalid actions in a row,
 * a prompt longer than the policy can read, or a failure. A broken episode never counts as a
 * failure of the policy.
 */
export type StopReason = "done" | "step-limit" | "stuck" | "context-limit" | "broken";

/** One attempt at a task. */
export interface Episode {
  readonly task: Task;
  /** Index of the group in its run; all episodes of a group have the same task. */
  readonly group: number;
  /** Index of the episode in its group. */
  readonly attempt: number;
  /** Where it branched off another attempt of its group; its steps begin with that one's. */
  readonly branch?: Branch;
  /** So many of its first steps a teacher took, as a hint (`train/hints.ts`). */
  readonly hint?: number;
  /** The seed of its world: that of the attempt it branched off, or of the hint, if there is one. */
  readonly seed: number;
  readonly policy: string;
  readonly goal: string;
  readonly firstObservation: string;
  /** What a world model may know about the initial state. */
  readonly initialContext?: string;
  readonly steps: readonly Step[];
  /**
   * How many updates the weights had learnt that drew it, or began to; recorded where the update
   * that learns from it may be a later one.
   */
  readonly weights?: number;
  /**
   * What was played in its group's place before, in order, and not learnt, because all episodes
   * earned the same; recorded with the group's first attempt.
   */
  readonly replaced?: readonly ReplacedGroup[];
  /** The largest return of its task, if the world knows one besides the environment's. */
  readonly maxReturn?: number;
  /** Sum of the rewards, without penalties. */
  readonly return: number;
  readonly success: boolean;
  readonly score?: number;
  readonly stop: StopReason;
  /** An agent's task as its program has it, and what the program returned. */
  readonly given?: unknown;
  readonly result?: unknown;
  /** Why the return is what it is, in the words of an agent's reward. */
  readonly why?: string;
  /** Tokens that were sampled for an agent and are in none of its steps, by the reason. */
  readonly untrained?: Readonly<Record<string, number>>;
  /** The error, if `stop` is `broken`, or if an agent ended with one that the model's output caused. */
  readonly error?: string;
}

/** The step of another attempt before which an episode branched off it. */
export interface Branch {
  readonly from: number;
  readonly step: number;
}

type Beginning = Pick<Episode, "branch" | "hint">;

/** The first step that was played for this episode: what is before is another's, or a teacher's. */
export const ownFrom = ({ branch, hint = 0 }: Beginning): number => branch?.step ?? hint;

/** The steps that were played for this episode. */
export function ownSteps(episode: Pick<Episode, "steps"> & Beginning): readonly Step[] {
  const from = ownFrom(episode);
  return from === 0 ? episode.steps : episode.steps.slice(from);
}

/** A group that another has replaced: its task, how its episodes ended, and the tokens they sampled. */
export interface ReplacedGroup extends Pick<Task, "id" | "type"> {
  readonly successes: number;
  readonly episodes: number;
  readonly tokens: number;
}

/** The numbers of an episode's steps in the order in which they were taken. */
export function inTime(steps: readonly Pick<Step, "time">[]): readonly number[] {
  const timeOf = (step: number): number => steps[step]!.time ?? step;
  return [...steps.keys()].sort((a, b) => timeOf(a) - timeOf(b));
}

/** The episodes of one task. */
export interface Group {
  readonly index: number;
  readonly task: Task;
  readonly episodes: readonly Episode[];
}

/** Longer reasons, such as ones that quote a whole observation, are cut. */
const LONGEST_REASON = 2000;

/** Why an episode broke, in words. */
export function reasonOf(error: unknown): string {
  const reason = withoutSecrets(messageOf(error));
  return reason.length <= LONGEST_REASON ? reason : `${reason.slice(0, LONGEST_REASON)}…`;
}

/** A state of an episode that is over, which another continues. */
export interface Fork {
  readonly episode: Episode;
  /** The step before which it is left. */
  readonly step: number;
  /** The world in that state, to be copied; without it, the steps before are repeated in a new one. */
  readonly world?: Env | undefined;
  /** A teacher played that episode: the steps before are a hint. */
  readonly isHint?: true;
}

/** Which episode to run, and under which limits. */
export interface EpisodePlan {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly task: Task;
  readonly group: number;
  readonly attempt: number;
  readonly seed: number;
  /** Where it branches off another episode (default: it begins with its task). */
  readonly fork?: Fork | undefined;
  readonly stepLimit: number;
  /** The episode ends after this many invalid actions in a row. */
  readonly invalidActionLimit: number;
  readonly policy: string;
  /** Interrupts a world that answers later. */
  readonly signal?: AbortSignal | undefined;
  /** Breaks the episode, with its reason: it has taken too long. */
  readonly late?: AbortSignal | undefined;
}
