/**
 * The engine contract: everything that algorithms need from a language model.
 *
 * Every algorithm of this project is a function of token log-probabilities, so an engine knows
 * nothing of rollouts, advantages or world models. Per-token arrays have the length of their
 * sequence: entry i belongs to token i, and entry 0 is unused, because nothing predicts the first
 * token.
 */
import type { Vocabulary } from "../constraint/vocabulary.js";
import { UserError } from "../errors.js";
import type { Objective } from "../objectives/expression.js";
import type { Constraint } from "../text/constraint.js";

/** What an engine can do. A configuration that needs more is refused before a run starts. */
export interface Capabilities {
  readonly name: string;
  readonly vocabularySize: number;
  readonly maxContext: number;
  readonly parameters: number;
  /** Entropy of the full next-token distribution, as a result and as a differentiable quantity. */
  readonly entropies: boolean;
  /** A value head, for PPO's critic. */
  readonly values: boolean;
  /** The objective runs inside the forward and backward pass, without a second forward pass. */
  readonly fusedObjective: boolean;
  readonly lora: boolean;
  /**
   * Accumulated gradients can be discarded and their norm returned, so that gradients can be
   * measured.
   */
  readonly discardGradients: boolean;
  /** Log-probabilities at temperatures other than 1 (`TargetSequence.temperatures`). */
  readonly temperatures: boolean;
  /** Samples and scores under constraints, once it has a vocabulary (`useVocabulary`). */
  readonly constraints?: boolean;
  /** Another program samples: its log-probabilities differ slightly from those of `forward`. */
  readonly otherSampler?: boolean;
  /**
   * It can keep the weights that act while it learns (`snapshotActor`): another program samples with
   * them meanwhile, or the engine itself does between two calls that learn.
   */
  readonly actor?: "meanwhile" | "in turns";
  /**
   * `forward` with the reference's weights may be asked for while `sample` is under way, and fills
   * the time in which nothing is sampled.
   */
  readonly scoresBesideSampling?: boolean;
  /**
   * It computes in 16 bits, or may do so: two computations of the same number agree only roughly.
   */
  readonly sixteenBits?: boolean;
}

/** How to choose the next tokens. */
export interface SamplingOptions {
  readonly maxTokens: number;
  /** 0 is greedy decoding. Default 1. */
  readonly temperature?: number;
  /** Keep the k most probable tokens; 0 keeps all. Default 0. */
  readonly topK?: number;
  /** Keep the smallest set of most probable tokens whose probability reaches this. Default 1. */
  readonly topP?: number;
  /** Token sequences after which sampling stops; the stop tokens are part of the sample. */
  readonly stop?: readonly (readonly number[])[];
  /** What the sample is held to: other tokens have no probability. */
  readonly constraint?: Constraint;
  /** How many tokens at the end of the prompt already belong to what is held to it. Default 0. */
  readonly begun?: number;
}

/** One prompt to continue `count` times after a single prefill. */
export interface SampleRequest extends SamplingOptions {
  readonly prompt: ArrayLike<number>;
  readonly count?: number;
  /**
   * A hint: a later prompt will begin with this prompt and, with a `count` of 1, its sample, so its
   * KV cache is worth keeping until the weights change. It changes no result. Prompts that were
   * requested together are expected to continue together, unless they are `apart`. A `branch` of
   * such a prompt uses its cache, leaves it there, and is not kept itself.
   */
  readonly continued?: boolean | "apart" | "branch";
  /** The same seed, request and weights give the same tokens, whatever else is in the batch. */
  readonly seed: number;
}

/** With which weights to sample. */
interface SampleOptions {
  /** `actor` is the frozen copy made by `snapshotActor`. Default `policy`. */
  readonly weights?: "policy" | "actor";
}

/** One continuation. */
export interface Sample {
  readonly tokens: readonly number[];
  /**
   * Log-probability of each token under the model itself (temperature 1, no truncation), among the
   * tokens that a constraint allowed.
   */
  readonly logprobs: readonly number[];
  /**
   * Log-probability under the distribution that was sampled from; undefined if a server does not
   * return it.
   */
  readonly sampledLogprobs?: readonly number[];
  readonly stopReason: "stop" | "length";
}

/**
 * Tokens that were just drawn for requests with a `count` of 1: the place of a request, its token, the
 * place of another one, and so on.
 */
export type Drawn = readonly number[];

/** Token ids, and which of them are targets: tokens whose log-probability is wanted. */
export interface TargetSequence {
  readonly ids: ArrayLike<number>;
  /** 1 if the token is a target. Default: every token but the first. */
  readonly targets?: ArrayLike<number>;
  /** The temperature of each token's logits. Default 1. */
  readonly temperatures?: ArrayLike<number>;
  /** Answers that were held to something: their tokens are scored among those that were allowed. */
  readonly constraints?: readonly ConstrainedSpan[];
}

/** An answer `[start, end)` in a sequence, from its first token on, and what it was held to. */
export interface ConstrainedSpan {
  readonly start: number;
  readonly end: number;
  readonly constraint: Constraint;
}

/** A sequence to learn from, with the constants its objective names, one per token. */
export interface TrainSequence extends TargetSequence {
  readonly inputs: Readonly<Record<string, ArrayLike<number>>>;
}

/** What to compute besides log-probabilities, and with which weights. */
export interface ForwardOptions {
  /** `reference` is the frozen snapshot made by `snapshotReference`. Default `policy`. */
  readonly weights?: "policy" | "reference";
  readonly entropies?: boolean;
  readonly values?: boolean;
}

/** Per-token results of one sequence; 0 where the token is not a target. */
export interface ForwardResult {
  readonly logprobs: Float32Array;
  readonly entropies?: Float32Array;
  readonly values?: Float32Array;
}

/** The result of one forward and backward pass over some sequences. */
export interface BackwardResult {
  /** The objective's loss summed over all target tokens; any weights belong in the objective. */
  readonly loss: number;
  /** Each named metric of the objective, summed over all target tokens. */
  readonly metrics: Readonly<Record<string, number>>;
  readonly logprobs: readonly Float32Array[];
}

/** AdamW with decoupled weight decay and global gradient-norm clipping. */
export interface AdamParams {
  readonly learningRate: number;
  readonly beta1?: number;
  readonly beta2?: number;
  readonly eps?: number;
  readonly weightDecay?: number;
  /** Gradients with a larger global norm are scaled down to it. Default: no clipping. */
  readonly gradClipNorm?: number;
}

/** The result of an optimiser step. */
export interface OptimResult {
  /** Global norm of the accumulated gradient, before clipping. */
  readonly gradNorm: number;
}

/** What `save` writes. */
export interface SaveOptions {
  /** Default true. */
  readonly optimizer?: boolean;
  /**
   * Writes a plain model for other programs, without the optimiser's state: an adapter is merged
   * into the weights, and the weights are written to this folder even if they are kept on a server.
   * Default false.
   */
  readonly merged?: boolean;
}

/** The file of a checkpoint whose weights are on a server, and which says where. */
export const POINTER_FILE = "remote.json";

/** A language model that samples, scores and learns. Gradients accumulate until `optimStep`. */
export interface Engine {
  readonly capabilities: Capabilities;
  /** `onDrawn` is told of tokens as they are drawn, by an engine that can tell. */
  sample(
    requests: readonly SampleRequest[],
    options?: SampleOptions,
    onDrawn?: (drawn: Drawn) => void,
  ): Promise<readonly (readonly Sample[])[]>;
  forward(
    sequences: readonly TargetSequence[],
    options?: ForwardOptions,
  ): Promise<readonly ForwardResult[]>;
  /** `onTokens` is told how many tokens are computed, by an engine that can tell. */
  forwardBackward(
    sequences: readonly TrainSequence[],
    objective: Objective,
    onTokens?: (done: number) => void,
  ): Promise<BackwardResult>;
  /**
   * Applies the accumulated gradient and clears it. NaN or infinity is an error that leaves the
   * weights unchanged.
   */
  optimStep(params: AdamParams): Promise<OptimResult>;
  /** Discards the accumulated gradient and returns its global norm, for gradient diagnostics. */
  discardGradients(): Promise<OptimResult>;
  /** Freezes a copy of the current weights as the reference. */
  snapshotReference(): Promise<void>;
  /** Freezes a copy of the current weights to act with, in place of an earlier one. */
  snapshotActor(): Promise<void>;
  /** Writes weights (Hugging Face layout) and, unless disabled, the optimiser's state. */
  save(folder: string, options?: SaveOptions): Promise<void>;
  /** Reads what `save` wrote, or any checkpoint of a supported architecture. */
  load(folder: string): Promise<void>;
  /**
   * Says which bytes the model's tokens stand for, which constraints depend on; asked for when there
   * is one.
   */
  useVocabulary?(vocabulary: () => Vocabulary): void;
  dispose(): Promise<void>;
}

/** What acting needs of an engine. */
export type ActingEngine = Pick<Engine, "capabilities" | "sample" | "useVocabulary">;

/**
 * A problem that is shown to the user as it is: bad token ids, overflow, NaN, a checkpoint that
 * does not fit.
 */
export class EngineError extends UserError {
  override readonly name = "EngineError";
}
