/**
 * Supervised fine-tuning on recorded episodes, which a model from scratch needs before RL can help
 * it.
 */
import { z } from "zod";
import type { Engine, TrainSequence } from "../engine/engine.js";
import { UserError } from "../errors.js";
import { supervisedObjective } from "../objectives/supervised.js";
import { createRandom } from "../random.js";
import type { Episode } from "../rollout/episode.js";
import { conversationOf, turnsIn } from "../text/conversation.js";
import {
  appendObservation,
  appendResponse,
  encodePrompt,
  encodeResponse,
  type LastStep,
  stepPrompt,
} from "../text/encode.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Sequence, SpanKind } from "../text/sequence.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { type MergedSequence, mergeContinuations, type StepSequence } from "../update/merge.js";
import { learningRate, optimizerOptions } from "./schedule.js";

/** Settings of supervised fine-tuning. */
export const sftOptions = z
  .strictObject({
    epochs: z.int().min(0).default(3).describe("epochs over the episodes"),
    batch: z.int().min(1).default(32).describe("episodes per optimiser step"),
    actionWeight: z
      .number()
      .min(0)
      .default(1)
      .describe("weight of the mean loss of action tokens (0: learn observations only)"),
    observationWeight: z
      .number()
      .min(0)
      .default(0)
      .describe("weight of the mean loss of observation tokens (0: imitate actions only)"),
    mean: z
      .enum(["each", "together"])
      .default("each")
      .describe(
        "a mean over actions and one over observations (each), or one weighted mean over both (together)",
      ),
    randomActions: z.boolean().default(false).describe("also imitate the teacher's random actions"),
    optimizer: optimizerOptions,
  })
  .superRefine(({ actionWeight, observationWeight, randomActions }, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (actionWeight === 0 && observationWeight === 0)
      refuse("actionWeight", "0 leaves nothing to learn: set observationWeight above 0 too");
    if (actionWeight === 0 && randomActions)
      refuse("randomActions", "no action is learnt with actionWeight 0: leave it out");
  })
  .prefault({});

/** Settings of supervised fine-tuning. */
export type SftOptions = z.output<typeof sftOptions>;

/** What happened at one optimiser step. */
export interface SftStep {
  readonly step: number;
  readonly steps: number;
  readonly loss: number;
  readonly gradNorm: number;
}

/** What is learnt of an episode, and how much it weighs. */
type Learnt = Partial<Pick<SftOptions, "actionWeight">> &
  Pick<SftOptions, "observationWeight" | "randomActions">;

/** Teaches the engine to act as in the episodes, and optionally to predict the observations. */
export async function sft(
  engine: Engine,
  episodes: readonly Episode[],
  text: { readonly tokenizer: Tokenizer; readonly style: PromptStyle },
  {
    seed,
    onStep,
    signal,
    ...settings
  }: z.input<typeof sftOptions> & {
    readonly seed: number;
    readonly onStep?: (step: SftStep) => void;
    readonly signal?: AbortSignal;
  },
): Promise<void> {
  const options = sftOptions.parse(settings);
  const samples = episodes.map((episode) => imitationSequences(episode, text, options));
  checkLengths(samples, engine.capabilities.maxContext);
  await fitSamples(engine, samples, { ...options, seed, onStep, signal });
}

/** Refuses episodes to imitate that the model could not read to their end. */
export function checkLengths(
  samples: readonly (readonly { readonly ids: ArrayLike<number> }[])[],
  maxContext: number,
): void {
  const lengths = samples.map((sample) => Math.max(0, ...sample.map(({ ids }) => ids.length)));
  const long = lengths.filter((length) => length > maxContext).length;
  if (long === 0) return;
  const longest = lengths.reduce((most, length) => Math.max(most, length), 0);
  throw new UserError(
    `${long} of ${samples.length} episodes to imitate do not fit into the model's context of ${maxContext} tokens; the longest has ${longest}. Show less history (--prompt.history), shorten episodes (--step-limit), or, for a model from scratch, raise --model.max-context.`,
  );
}

/** The settings that fitting needs. */
export interface FitOptions
  extends Pick<SftOptions, "epochs" | "batch" | "optimizer">,
    Partial<MeanOptions> {
  readonly seed: number;
  readonly onStep?: (step: SftStep) => void;
  readonly signal?: AbortSignal;
}

/** How the losses of two kinds of tokens become one. */
export type MeanOptions = Pick<SftOptions, "actionWeight" | "observationWeight" | "mean">;

const ONE_KIND: MeanOptions = { actionWeight: 1, observationWeight: 0, mean: "each" };

/**
 * Fits the engine's model to samples, each one or more sequences with a `weight` per token, and an
 * `observationWeight` where observations are learnt too, in mean batches.
 */
export async function fitSamples(
  engine: Engine,
  sequences: readonly (readonly TrainSequence[])[],
  options: FitOptions,
): Promise<void> {
  const perEpoch = Math.ceil(sequences.length / options.batch);
  const steps = options.epochs * perEpoch;
  const random = createRandom(options.seed);
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    const order = random.shuffle([...sequences]);
    for (let b = 0; b < perEpoch; b++) {
      options.signal?.throwIfAborted();
      const step = epoch * perEpoch + b;
      const batch = order.slice(b * options.batch, (b + 1) * options.batch).flat();
      const { loss } = await engine.forwardBackward(
        weighted(batch, { ...ONE_KIND, ...options }),
        supervisedObjective,
      );
      const { gradNorm } = await engine.optimStep({
        ...options.optimizer,
        learningRate: learningRate(options.optimizer, step, steps),
      });
      options.onStep?.({ step, steps, loss, gradNorm });
    }
  }
}

/** An episode as sequences, with the teacher's actions, its random ones and observations marked. */
export function imitationSequences(
  episode: Episode,
  { tokenizer, style }: { readonly tokenizer: Tokenizer; readonly style: PromptStyle },
  { actionWeight = 1, observationWeight, randomActions }: Learnt,
): readonly MergedSequence[] {
  const { tools } = conversationOf(episode.steps[0]?.prompt ?? []).tools ?? {};
  let last: LastStep | undefined;
  return mergeContinuations(
    episode.steps.map((step, index) => {
      const rendered = () => step.prompt;
      // A recorded conversation that lost turns starts anew, as it did when it was played.
      const isCut = last !== undefined && turnsIn(step.prompt) <= turnsIn(last.prompt);
      const { sequence: prompt, pieces } =
        isCut && style.promptTokens !== undefined
          ? { sequence: encodePrompt(tokenizer, style, step.prompt), pieces: step.prompt }
          : stepPrompt(tokenizer, style, rendered, last, tools);
      const response = { ids: encodeResponse(tokenizer, style, step.response) };
      const done = episode.stop === "done" && index === episode.steps.length - 1;
      const whole = appendObservation(
        appendResponse(prompt, response),
        tokenizer,
        style,
        step.observation,
        done,
        { response: step.response, tools },
      );
      const { response: said, action, observation } = step;
      last = { sequence: whole, prompt: pieces ?? [], response: said, action, observation };
      const start = prompt.ids.length;
      const isLearnt = !step.strayed || randomActions;
      return { start, ...learntOf(whole, start, { actionWeight, observationWeight, isLearnt }) };
    }),
  );
}

/** What is learnt of a step's tokens from `first` on: its action, if that is, and its observation. */
export function learntOf(
  { ids, spans }: Sequence,
  first: number,
  {
    actionWeight,
    observationWeight,
    isLearnt,
  }: Pick<SftOptions, "actionWeight" | "observationWeight"> & { readonly isLearnt: boolean },
): Omit<StepSequence, "start"> {
  const marked = (wanted: SpanKind, isWanted: boolean): Float32Array => {
    const marks = new Float32Array(ids.length - first);
    for (const { kind, start, end } of spans)
      if (isWanted && kind === wanted && start >= first) marks.fill(1, start - first, end - first);
    return marks;
  };
  const actions = marked("action", isLearnt && actionWeight > 0);
  const observations = marked("observation", observationWeight > 0);
  return { ids, ...targetsOf(actions, observations, observationWeight > 0) };
}

/** The targets and inputs of tokens of two kinds; `hasObservations` says whether the second counts. */
export function targetsOf(
  actions: Float32Array,
  observations: Float32Array,
  hasObservations: boolean,
): Pick<StepSequence, "targets" | "inputs"> {
  return {
    targets: Uint8Array.from(actions, (mark, i) => (mark > 0 || observations[i]! > 0 ? 1 : 0)),
    inputs: {
      weight: actions,
      ...(hasObservations && { observationWeight: observations }),
    },
  };
}

/**
 * The batch with one weight per token. `each`: a · mean over actions + b · mean over observations,
 * so that the actions' part does not depend on b. `together`: the mean over all, where a token of
 * either kind weighs a or b.
 */
export function weighted(
  batch: readonly TrainSequence[],
  { actionWeight, observationWeight, mean }: MeanOptions,
): readonly TrainSequence[] {
  if (batch.every(({ inputs }) => inputs.observationWeight === undefined))
    return asMean(batch, mean === "each" ? actionWeight : 1);
  const total = (name: string): number =>
    batch.reduce((sum, { inputs }) => sum + sumOf(inputs[name] ?? []), 0);
  const isEach = mean === "each";
  const perAction = actionWeight / ((isEach && total("weight")) || 1);
  const perObservation = observationWeight / ((isEach && total("observationWeight")) || 1);
  const tokens = batch.map(({ inputs, ...sequence }) => ({
    ...sequence,
    inputs: {
      weight: Float32Array.from(
        inputs.weight!,
        (mark, i) => perAction * mark + perObservation * (inputs.observationWeight?.[i] ?? 0),
      ),
    },
  }));
  return isEach ? tokens : asMean(tokens);
}

function sumOf(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum;
}

/** The batch with weights that sum to 1, or to another number. */
export function asMean(batch: readonly TrainSequence[], sum = 1): readonly TrainSequence[] {
  let total = 0;
  for (const { inputs } of batch) for (const w of Array.from(inputs.weight!)) total += w;
  return batch.map((sequence) => ({
    ...sequence,
    inputs: { weight: Float32Array.from(sequence.inputs.weight!, (w) => (sum * w) / total) },
  }));
}
