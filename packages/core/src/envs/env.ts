/**
 * The environment contract.
 *
 * The registry lists environment kinds (`EnvKind`). Opened with options, a kind gives an
 * `Environment` with task lists, which creates `Env`s; each runs one episode at a time. In-process
 * environments are synchronous and deterministic: the same task, episode seed and actions give the
 * same observations, byte for byte. Remote ones have the same interface with promises.
 */
import type { z } from "zod";
import { UserError } from "../errors.js";
import type { EnvPrompt } from "../text/prompt-style.js";
import type { Tool } from "../text/tool.js";
import type { EnvLimits } from "./limits.js";

/** One problem to solve: a goal and an initial state, identified by its id. */
export interface Task {
  /** Unique within the environment and stable between versions, such as `train/17`. */
  readonly id: string;
  readonly split: string;
  /** The family of the task, by which results are broken down, such as `heat`. */
  readonly type: string;
}

/** What an environment reports about a step besides the observation. */
export interface StepInfo {
  /** Whether the environment knew the action and could carry it out. */
  readonly valid: boolean;
  /** Whether the goal is reached now. */
  readonly success: boolean;
  /** A graded result in [0, 1], if the environment has one. */
  readonly score?: number;
}

/** The environment's response to one action. */
export interface StepResult {
  readonly observation: string;
  readonly reward: number;
  /**
   * Whether the episode is over by the environment's own rules (the rollout applies the step
   * limit).
   */
  readonly done: boolean;
  readonly info: StepInfo;
}

/** What every running environment offers, in-process or remote. */
interface EnvFacts {
  /** The goal of the current task, in words; known after `reset`. */
  readonly goal: string;
  /** The family of the current task; known after `reset`. */
  readonly taskType: string;
  /** The actions that would be carried out now, sorted; absent if they cannot be listed. */
  admissibleActions?(): readonly string[];
  /** The tools to act with, if actions are tool calls (`tool-env.ts`); known after `reset`. */
  tools?(): readonly Tool[];
  /** Whether the action is irreversible (a purchase, an answer); absent if none is. */
  irreversible?(action: string): boolean;
  /** Facts about the initial state that a world model may know and the policy may not. */
  initialContext?(): string | undefined;
  /**
   * The largest return of the current task, known after `reset`; absent or undefined: the
   * environment's.
   */
  maxReturn?(): number | undefined;
}

/** One episode's world, in this process. */
export interface Env extends EnvFacts {
  /**
   * Starts the task and returns the first observation; `seed` varies surface noise between
   * episodes.
   */
  reset(task: Task, seed?: number): string;
  step(action: string): StepResult;
  /** An exact, independent copy in the current state. */
  clone(): Env;
}

/**
 * One episode's world that answers later: behind a server, or with rewards that take time. A dead
 * server is an error, never a reward of 0. `signal` is aborted when nobody waits for the answer any
 * more.
 */
export interface RemoteEnv extends EnvFacts {
  /** Starts what the world runs in, if that takes time that is not the world's own. */
  prepare?(): Promise<void>;
  reset(task: Task, seed?: number, signal?: AbortSignal): Promise<string>;
  step(action: string, signal?: AbortSignal): Promise<StepResult>;
  /** An exact, independent copy in the current state, if one can be made; it may be slow. */
  clone?(): Promise<RemoteEnv>;
  /** Makes ready what the environment's teachers look at; called before they are asked. */
  prepareTeacher?(): Promise<void>;
  close(): Promise<void>;
}

/** Whether a world answers later. */
export function isRemote(env: Env | RemoteEnv): env is RemoteEnv {
  return "close" in env;
}

/** Chooses the next action; may look at the true state of the world. */
export type Expert = (env: Env) => string;

/** The same for any world, also one that answers later. */
export type Teacher = {
  // A method, so that each environment's teacher may ask for the kind of world that it creates.
  act(env: Env | RemoteEnv): string;
}["act"];

/** An opened environment: its task lists and a factory of running ones. */
export interface Environment {
  readonly name: string;
  readonly splits: readonly string[];
  /** Maximum steps of an episode in a rollout. */
  readonly stepLimit: number;
  /**
   * The largest return an episode can have: R_max of PaW eq. 10, unless the world knows that of its
   * task.
   */
  readonly maxReturn: number;
  /** What becomes of white space inside an action (default: it is kept as it was written). */
  readonly whiteSpace?: "keep" | "collapse";
  /** Whether any text is an action, so that none is invalid, as where questions are answered. */
  readonly freeText?: boolean;
  /** Whether its settings alone say what its texts are, so that no file or server can change them. */
  readonly madeUp?: boolean;
  /** Most episodes at once; rollouts play larger batches in parts (default: any number). */
  readonly parallel?: number;
  /** Limits on time and length (default: those of `limits.ts`); configurations set them. */
  readonly limits?: EnvLimits;
  /** What it tells the policy, and how; default: a neutral wording. */
  readonly prompt?: EnvPrompt;
  /** The tasks of a split in their fixed order; an unknown split is an `EnvError`. */
  tasks(split: string): readonly Task[];
  /** The task with this id; an unknown id is an `EnvError`. */
  task(id: string): Task;
  create(): Env | RemoteEnv;
  /** Frees what its episodes share, such as a model; it can be used again afterwards. */
  close?(): Promise<void>;
  /** A teacher: it may look at the true state of the world that `create` gives. */
  readonly expert?: Teacher;
  /** Whether some tasks cannot be solved, so that the expert fails there. */
  readonly expertMayFail?: boolean;
  /**
   * An expert that acts only on what it has seen, so that it can be imitated by an agent that sees
   * no more.
   */
  readonly seeker?: Teacher;
  /**
   * A world as recorded in traces of the original system, if that differs from the policy's view.
   */
  traceWorld?(game: string): TraceWorld;
  /** Compares recordings in a format other than that of traces; `texts` are the lines as written. */
  replayRecords?(
    records: readonly unknown[],
    texts: readonly string[],
  ): ReplayResult | Promise<ReplayResult>;
}

/** A kind of environment, as the registry lists it. */
export interface EnvKind<Options extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly summary: string;
  /** The schema of its options; types, defaults, help and errors are derived from it. */
  readonly options: Options;
  /** Whether its options start programs or name files to read, so that only the user's own line may give them. */
  readonly privileged?: boolean;
  /** Opens it; missing or broken data is an `EnvError` that names the file and the fix. */
  open(options: z.output<Options>): Environment;
  /** Refuses options with which no episode could start; those who only read a record do not ask. */
  ready?(options: z.output<Options>): void;
  /** Which data there is, and how to get what is missing, for `pawl env info`. */
  describe?(options: z.output<Options>): readonly string[];
}

/** An environment's name with its options, as in configurations and manifests. */
export interface EnvConfig {
  readonly name: string;
  readonly [option: string]: unknown;
}

/** A problem with an environment, its data or its tasks, shown to the user as it is. */
export class EnvError extends UserError {
  override readonly name = "EnvError";
}

/** The episode of a world; without one, the error for what was asked. */
export function begun<T>(episode: T | undefined, world: string, asked: string): T {
  if (episode === undefined)
    throw new EnvError(`${world}: ${asked} was called before reset; call reset(task) first.`);
  return episode;
}

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
