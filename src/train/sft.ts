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
import { conversationOf } from "../text/conversation.js";
import {
  appendObservation,
  appendResponse,
  encodeResponse,
  type LastStep,
  stepPrompt,
} from "../text/encode.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { type MergedSequence, mergeContinuations } from "../update/merge.js";
import { learningRate, optimizerOptions } from "./schedule.js";

/** Settings of supervised fine-tuning. */
export const sftOptions = z
  .strictObject({
    epochs: z.int().min(0).default(3).describe("epochs over the episodes"),
    batch: z.int().min(1).default(32).describe("episodes per optimiser step"),
    observationWeight: z
      .number()
      .min(0)
      .default(0)
      .describe("weight of observation tokens relative to action tokens (0: imitate actions only)"),
    randomActions: z.boolean().default(false).describe("also imitate the teacher's random actions"),
    optimizer: optimizerOptions,
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

/** Teaches the engine to act as in the episodes, and optionally to predict the observations. */
export async function sft(
  engine: Engine,
  episodes: readonly Episode[],
  text: { readonly tokenizer: Tokenizer; readonly style: PromptStyle },
  options: SftOptions & {
    readonly seed: number;
    readonly onStep?: (step: SftStep) => void;
    readonly signal?: AbortSignal;
  },
): Promise<void> {
  const samples = episodes.map((episode) => imitationSequences(episode, text, options));
  checkLengths(samples, engine.capabilities.maxContext);
  await fitSamples(engine, samples, options);
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
export interface FitOptions extends Pick<SftOptions, "epochs" | "batch" | "optimizer"> {
  readonly seed: number;
  readonly onStep?: (step: SftStep) => void;
  readonly signal?: AbortSignal;
}

/**
 * Fits the engine's model to samples, each one or more sequences with a `weight` per token, in mean
 * batches.
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
      const { loss } = await engine.forwardBackward(asMean(batch), supervisedObjective);
      const { gradNorm } = await engine.optimStep({
        ...options.optimizer,
        learningRate: learningRate(options.optimizer, step, steps),
      });
      options.onStep?.({ step, steps, loss, gradNorm });
    }
  }
}

/**
 * An episode as sequences: the teacher's actions weigh 1, its random actions and observations as
 * configured.
 */
export function imitationSequences(
  episode: Episode,
  { tokenizer, style }: { readonly tokenizer: Tokenizer; readonly style: PromptStyle },
  { observationWeight, randomActions }: Pick<SftOptions, "observationWeight" | "randomActions">,
): readonly MergedSequence[] {
  const { tools } = conversationOf(episode.steps[0]?.prompt ?? []).tools ?? {};
  let last: LastStep | undefined;
  return mergeContinuations(
    episode.steps.map((step, index) => {
      const rendered = () => step.prompt;
      const { sequence: prompt, pieces } = stepPrompt(tokenizer, style, rendered, last, tools);
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
      const weights = {
        prompt: 0,
        template: 0,
        action: step.strayed && !randomActions ? 0 : 1,
        observation: observationWeight,
      };
      const { ids, spans } = whole;
      const first = prompt.ids.length;
      const weight = new Float32Array(ids.length - first);
      for (const { kind, start, end } of spans)
        if (start >= first) weight.fill(weights[kind], start - first, end - first);
      return {
        ids,
        start: first,
        targets: Uint8Array.from(weight, (w) => (w > 0 ? 1 : 0)),
        inputs: { weight },
      };
    }),
  );
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
