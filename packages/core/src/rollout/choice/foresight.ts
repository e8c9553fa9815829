/** What actions would bring, before one is taken: asked of a model, or tried on a copy of the world. */
import { askEngine } from "../../engine/ask.js";
import type { ActingEngine } from "../../engine/engine.js";
import { EnvError, isRemote } from "../../envs/env.js";
import { isConversation } from "../../text/conversation.js";
import { appendObservation } from "../../text/encode.js";
import type { PromptStyle } from "../../text/prompt.js";
import type { Sequence } from "../../text/sequence.js";
import type { Tokenizer } from "../../text/tokenizer.js";
import type { Situation } from "../policy.js";
import type { RefusalReader, WorldAnswer } from "./refusals.js";

/** An action that might be taken. */
export interface Question {
  readonly situation: Situation;
  readonly action: string;
  readonly response: string;
  /** The prompt and the response, in the tokens of the model that acts. */
  readonly answered: Sequence;
}

/** What an action is expected to bring. */
export interface Forecast {
  /** The world's answer, or how it begins, with `CUT`. */
  readonly predicted?: string;
  /** How probable the model thinks just that. */
  readonly probability?: number;
  /** The chance that the action is refused. */
  readonly refused: number;
}

/** What predictions cost, in tokens. */
export interface ForesightCost {
  /** Read for predictions, besides what the same model has read to act. */
  read: number;
  /** Sampled. */
  sampled: number;
}

/** Predicts what actions bring; one forecast for each question, in order. */
export type Foresight = (
  questions: readonly Question[],
  cost: ForesightCost,
) => Promise<readonly Forecast[]>;

/** Tries every action on a copy of the world: the best that any model could know. */
export const exactForesight: Foresight = async (questions) => {
  const answers = await Promise.all(
    questions.map(({ situation, action }) => triedOut(situation, action)),
  );
  return answers.map(({ observation, valid }) => ({
    predicted: observation,
    refused: valid ? 0 : 1,
  }));
};

/** What a copy of the world answers. */
export async function triedOut(
  { env, task }: Pick<Situation, "env" | "task">,
  action: string,
): Promise<WorldAnswer & { readonly done: boolean }> {
  if (!isRemote(env)) {
    const { observation, info, done } = env.clone().step(action);
    return { observation, valid: info.valid, done };
  }
  const copy = await env.clone?.();
  if (copy === undefined)
    throw new EnvError(`the world of task ${task.id} cannot be copied: choose vote, self or model`);
  try {
    const { observation, info, done } = await copy.step(action);
    return { observation, valid: info.valid, done };
  } finally {
    await copy.close();
  }
}

/** A model that continues an action with what follows it. */
export interface ForesightModel {
  readonly engine: ActingEngine;
  readonly tokenizer: Tokenizer;
  /** The tokens up to where the world's answer begins. */
  prompt(question: Question): readonly number[];
  /** How much of that it has read to act. Default: nothing. */
  known?(question: Question): number;
  /** The tokens that end an answer. */
  readonly ends: readonly number[];
}

/** Ends what is only the beginning of an answer. */
export const CUT = " …";

/** The beginning of an answer is predicted, in tokens: it tells a refusal, and costs little. */
const PREDICTED_TOKENS = 24;

/** Takes the most probable answer, and how probable its telling words are. */
export function modelForesight(
  { engine, tokenizer, prompt, known, ends }: ForesightModel,
  reader: RefusalReader,
): Foresight {
  const { maxContext } = engine.capabilities;
  return async (questions, cost) => {
    const prompts = questions.map(prompt);
    const fits = prompts.map((ids) => ids.length + PREDICTED_TOKENS <= maxContext);
    const requests = prompts
      .filter((_, i) => fits[i])
      .map((ids) => ({
        prompt: ids,
        maxTokens: PREDICTED_TOKENS,
        temperature: 0,
        stop: ends.map((id) => [id]),
        seed: 0,
        ...(known && { continued: "branch" as const }),
      }));
    const samples = (
      requests.length === 0 ? [] : await askEngine(() => engine.sample(requests))
    ).values();
    return prompts.map((ids, i): Forecast => {
      // Without room to answer, nothing is known but how often actions are refused.
      if (!fits[i]) return { refused: reader.base };
      const { tokens, logprobs } = samples.next().value![0]!;
      cost.read += ids.length - (known?.(questions[i]!) ?? 0);
      cost.sampled += tokens.length;
      const ended = ends.includes(tokens.at(-1)!);
      const said = ended ? tokens.slice(0, -1) : tokens;
      const text = (count: number): string => tokenizer.decode(said.slice(0, count)).trim();
      return {
        predicted: `${text(said.length)}${ended ? "" : CUT}`,
        probability: Math.exp(logprobs.reduce((sum, logprob) => sum + logprob, 0)),
        refused: refusedOf(said.length, text, logprobs, reader),
      };
    });
  };
}

/** An opening tells refusals if it was hardly ever the other. */
const TELLING = 0.05;

/**
 * The chance of a refusal: that of the telling opening, times how telling it is; of whatever else
 * might have been said, no more is known than how often actions are refused.
 */
function refusedOf(
  length: number,
  text: (count: number) => string,
  logprobs: readonly number[],
  reader: RefusalReader,
): number {
  let logprob = 0;
  let chance = reader.base;
  for (let count = 1; count <= length; count++) {
    logprob += logprobs[count - 1]!;
    chance = reader.chance(text(count));
    if (Math.min(chance, 1 - chance) < TELLING) break;
  }
  const likely = Math.exp(logprob);
  return likely * chance + (1 - likely) * reader.base;
}

/** The model that acts, asked for what follows its own actions. */
export function ownForesight(model: {
  readonly engine: ActingEngine;
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
}): ForesightModel {
  const { engine, tokenizer, style } = model;
  const ended = (done: boolean) => tokenizer.id(style.continuation("", done).at(-1)?.text ?? "");
  const ends = style.responseEnd === "" ? tokenizer.endIds : [ended(false), ended(true)];
  return {
    engine,
    tokenizer,
    ends: ends.filter((id) => id !== undefined),
    known: ({ answered }) => answered.spans.at(-1)!.start,
    prompt({ answered, situation, response }) {
      const { tools, observation } = situation;
      if (!isConversation(style.continuation(observation, false, tools))) return answered.ids;
      // What the template writes before an answer does not depend on the answer.
      const turn = { response, tools };
      const next = appendObservation(answered, tokenizer, style, observation || "…", false, turn);
      const from = answered.spans.at(-1)!.end;
      const seen = next.spans.find(({ kind, start }) => kind === "observation" && start >= from);
      return next.ids.slice(0, seen?.start ?? from);
    },
  };
}
