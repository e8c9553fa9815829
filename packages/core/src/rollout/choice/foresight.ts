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
): Promise<WorldAnswer> {
  if (!isRemote(env)) {
    const { observation, info } = env.clone().step(action);
    return { observation, valid: info.valid };
  }
  const copy = await env.clone?.();
  if (copy === undefined)
    throw new EnvError(`the world of task ${task.id} cannot be copied: choose vote, self or model`);
  try {
    const { observation, info } = await copy.step(action);
    return { observation, valid: info.valid };
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

/** At most so many tokens of an answer are predicted: they tell a refusal, and cost little. */
const LONGEST = 24;
/** Mostly, so many tell. */
const OPENING = 2;
/** An opening tells refusals if it was hardly ever the other. */
const TELLING = 0.05;

/** An answer as far as it is predicted. */
interface Answer {
  readonly question: Question;
  readonly prompt: readonly number[];
  readonly tokens: number[];
  readonly logprobs: number[];
  /** Tokens that the model has read, here or to act. */
  read: number;
  /** The chance of a refusal by what is predicted so far. */
  refused: number;
  ended: boolean;
  /** Whether it tells by now. */
  told: boolean;
}

/**
 * Takes the most probable answer, and how probable its telling words are. `whole` predicts all of it, to
 * be shown and judged; otherwise no more than the chance of a refusal needs, which is the same.
 */
export function modelForesight(
  { engine, tokenizer, prompt, known, ends }: ForesightModel,
  reader: RefusalReader,
  { whole = false }: { readonly whole?: boolean } = {},
): Foresight {
  const { maxContext } = engine.capabilities;

  /** Goes on with the answers up to a number of tokens. */
  async function predict(answers: readonly Answer[], length: number, cost: ForesightCost) {
    const requests = answers.map((answer) => ({
      prompt: [...answer.prompt, ...answer.tokens],
      maxTokens: length - answer.tokens.length,
      temperature: 0,
      stop: ends.map((id) => [id]),
      seed: 0,
      // A branch is not kept, so that the model's own prompts are; of another model, openings may go on.
      continued: known !== undefined ? ("branch" as const) : length < LONGEST && ("apart" as const),
    }));
    const samples = await askEngine(() => engine.sample(requests));
    answers.forEach((answer, i) => {
      const { tokens, logprobs } = samples[i]![0]!;
      const before = requests[i]!.prompt.length;
      cost.read += before - answer.read;
      cost.sampled += tokens.length;
      // What is not kept is read once more.
      if (known === undefined) answer.read = before + tokens.length - 1;
      answer.tokens.push(...tokens);
      answer.logprobs.push(...logprobs);
      answer.ended = ends.includes(tokens.at(-1)!);
      Object.assign(answer, refusalIn(answer));
    });
  }

  const said = ({ tokens, ended }: Answer) => (ended ? tokens.slice(0, -1) : tokens);
  const textOf = (tokens: readonly number[]): string => tokenizer.decode(tokens).trim();

  /**
   * The chance of a refusal: that of the telling opening, times how telling it is; of whatever else
   * might have been said, no more is known than how often actions are refused.
   */
  function refusalIn(answer: Answer): Pick<Answer, "refused" | "told"> {
    const { base } = reader;
    let [logprob, chance, told] = [0, base, false];
    for (let count = 1; count <= said(answer).length && !told; count++) {
      logprob += answer.logprobs[count - 1]!;
      chance = reader.chance(textOf(answer.tokens.slice(0, count)));
      told = Math.min(chance, 1 - chance) < TELLING;
    }
    const likely = Math.exp(logprob);
    return { refused: likely * chance + (1 - likely) * base, told };
  }

  return async (questions, cost) => {
    const answers = questions.map((question): Answer => {
      const own = { question, prompt: prompt(question), read: known?.(question) ?? 0 };
      const nothing = { refused: reader.base, ended: false, told: false };
      return { ...own, tokens: [], logprobs: [], ...nothing };
    });
    // Without room to answer, nothing is known but how often actions are refused.
    const asked = answers.filter(({ prompt: ids }) => ids.length + LONGEST <= maxContext);
    for (const length of whole ? [LONGEST] : [OPENING, LONGEST]) {
      const open = asked.filter(({ ended, told }) => !ended && !told);
      if (open.length > 0) await predict(open, length, cost);
    }
    return answers.map((answer): Forecast => {
      const { tokens, logprobs, ended, refused } = answer;
      if (tokens.length === 0) return { refused };
      return {
        predicted: `${textOf(said(answer))}${ended ? "" : CUT}`,
        probability: Math.exp(logprobs.reduce((sum, logprob) => sum + logprob, 0)),
        refused,
      };
    });
  };
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
