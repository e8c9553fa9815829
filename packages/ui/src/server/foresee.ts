/**
 * What an agent expects the world to answer, asked on its own tokens: what it reads, its response,
 * and what its prompt style writes before an observation.
 */
import { askEngine } from "@pawl/core/engine/ask.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  encodePrompt,
  encodeResponse,
  responseEndIds,
} from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { markers } from "@pawl/core/text/prompt-compact.js";
import type { PromptView } from "@pawl/core/text/prompt-style.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { degenerationOf, type Prediction } from "@pawl/worldmodel/model.js";
import { maskOf } from "../report/predictions.js";
import type { TokenView } from "../report/views.js";
import type { ExpectedStep, NextAction, NextActions, Surprise } from "./api.js";
import { tokensOf } from "./episode-view.js";
import { type DeskModel, MOST_TOKENS } from "./model-desk.js";
import type { LastTurn } from "./play-session.js";

/** More admissible actions than this are not scored one by one: the agent is sampled instead. */
const MOST_SCORED = 64;
/** Samples where actions cannot be listed. */
const SAMPLES = 16;
/** Actions whose outcome is predicted. */
const PREDICTED = 3;

/** The probabilities of the next actions, and the expected outcome of the likeliest. */
export async function nextActions(
  model: DeskModel,
  environment: Environment,
  view: PromptView,
): Promise<NextActions> {
  const { acting, engine, tokenizer } = model;
  if (acting === undefined)
    throw new HttpError(
      422,
      `${model.name} is a world model and does not act: choose a run of pawl train`,
    );
  const style = promptStyle(environment.prompt, acting.prompt, tokenizer);
  const read = encodePrompt(tokenizer, style, style.render(view));
  const prompt = read.ids;
  const { maxContext } = engine.capabilities;
  if (prompt.length + 1 >= maxContext)
    throw new HttpError(
      422,
      `the prompt has ${prompt.length} tokens, and ${model.name} reads ${maxContext}`,
    );
  const listed = view.admissible;
  const scored = listed !== undefined && listed.length > 0 && listed.length <= MOST_SCORED;
  const actions = scored ? await score() : await sample();
  const likely = actions.slice(0, PREDICTED);
  const predictions = await foresee(
    model,
    likely.map(({ action }) => askedAfter(action)),
  );
  return {
    how: scored ? "scored" : "sampled",
    actions: actions.map((one, i) => {
      const prediction = predictions[i];
      return prediction === undefined
        ? one
        : { ...one, predicted: prediction.observation, predictedSuccess: prediction.success };
    }),
  };

  /** What the agent reads, this action, and what stands before the world's answer to it. */
  function askedAfter(action: string): readonly number[] {
    const { tools } = view;
    const response = style.format(action);
    const acted = appendResponse(read, { ids: encodeResponse(tokenizer, style, response) });
    // Any text will do: it is cut off again.
    const seen = appendObservation(acted, tokenizer, style, "?", false, { response, tools });
    return beforeObservation(seen)!;
  }

  /** The probability of each listed action, written as the agent would. */
  async function score(): Promise<NextAction[]> {
    const answers = listed!.map((action) => encodeResponse(tokenizer, style, style.format(action)));
    const fitting = answers.flatMap((ids, i) =>
      prompt.length + ids.length <= maxContext ? [{ ids, action: listed![i]! }] : [],
    );
    const results = await engine.forward(
      fitting.map(({ ids }) => ({
        ids: [...prompt, ...ids],
        targets: Uint8Array.from({ length: prompt.length + ids.length }, (_, i) =>
          i >= prompt.length ? 1 : 0,
        ),
      })),
    );
    return fitting
      .map(({ action }, i) => {
        const logprobs = results[i]!.logprobs.subarray(prompt.length);
        return { action, p: Math.exp(logprobs.reduce((sum, logprob) => sum + logprob, 0)) };
      })
      .sort((a, b) => b.p - a.p);
  }

  /** How often the agent does what, if it is asked a few times. */
  async function sample(): Promise<NextAction[]> {
    const maxTokens = Math.min(acting!.maxTokens, maxContext - prompt.length);
    const stop = responseEndIds(tokenizer, style).map((id) => [id]);
    const [samples] = await engine.sample([{ prompt, maxTokens, count: SAMPLES, stop, seed: 0 }]);
    const counts = new Map<string, number>();
    for (const { tokens } of samples!) {
      const { action } = style.parse(decodeResponse(tokenizer, style, tokens), view.tools);
      counts.set(action, (counts.get(action) ?? 0) + 1);
    }
    return [...counts]
      .map(([action, count]) => ({ action, p: count / SAMPLES }))
      .sort((a, b) => b.p - a.p);
  }
}

/** What came after the last action, token by token, with the probability that the agent gave each. */
export async function surpriseOf(
  { acting, engine, tokenizer, name }: DeskModel,
  environment: Environment,
  { view, step }: LastTurn,
): Promise<Surprise> {
  if (acting === undefined)
    throw new HttpError(422, `${name} is a world model: choose a run of pawl train`);
  const style = promptStyle(environment.prompt, acting.prompt, tokenizer);
  const read = encodePrompt(tokenizer, style, style.render(view));
  const response = style.format(step.action);
  const acted = appendResponse(read, { ids: encodeResponse(tokenizer, style, response) });
  const answered = { response, tools: view.tools };
  const seen = appendObservation(acted, tokenizer, style, step.observation, step.done, answered);
  const { ids, spans } = seen;
  if (ids.length > engine.capabilities.maxContext) return { tokens: [] };
  const came = spans.filter(({ kind }) => kind === "observation");
  const targets = Uint8Array.from(ids, (_, i) =>
    came.some(({ start, end }) => i >= start && i < end) ? 1 : 0,
  );
  const [result] = await engine.forward([{ ids, targets }]);
  // How the style marks an observation's end is nothing that came.
  const marks = [tokenizer.id(markers.action), tokenizer.id(markers.end), ...tokenizer.endIds];
  return {
    tokens: came.flatMap(({ start, end }) =>
      ids.slice(start, end).flatMap((id, i) =>
        marks.includes(id)
          ? []
          : [
              {
                text: tokenizer.decode([id]),
                kind: "observation" as const,
                logprob: result!.logprobs[start + i]!,
              },
            ],
      ),
    ),
  };
}

/** The sequence up to its observation; undefined if it has none. */
export function beforeObservation({ ids, spans }: Sequence): readonly number[] | undefined {
  const seen = spans.find(({ kind }) => kind === "observation");
  return seen === undefined ? undefined : ids.slice(0, seen.start);
}

/** The most probable answer after each prompt. */
export async function foresee(
  { engine, tokenizer, acting }: DeskModel,
  prompts: readonly (readonly number[])[],
): Promise<readonly Prediction[]> {
  const last = tokenizer.id(markers.end);
  const ends =
    acting?.prompt.style === "compact"
      ? [tokenizer.id(markers.action)!, last!]
      : [...tokenizer.endIds];
  const room = (prompt: readonly number[]) =>
    Math.min(MOST_TOKENS, engine.capabilities.maxContext - prompt.length);
  const asked = prompts.filter((prompt) => room(prompt) > 0);
  const requests = asked.map((prompt) => ({
    ...{ prompt, maxTokens: room(prompt), temperature: 0, seed: 0 },
    stop: ends.map((id) => [id]),
  }));
  const samples = requests.length === 0 ? [] : await askEngine(() => engine.sample(requests));
  return prompts.map((prompt): Prediction => {
    const sample = samples[asked.indexOf(prompt)]?.[0];
    if (sample === undefined)
      return { observation: "", done: true, success: false, degeneration: "context" };
    const { tokens } = sample;
    const ended = ends.includes(tokens.at(-1)!);
    const observation = tokenizer.decode(ended ? tokens.slice(0, -1) : tokens).trim();
    // The end of an episode is an agent's only sign of success.
    const done = acting?.prompt.style === "compact" && tokens.at(-1) === last;
    const outcome = { observation, done, success: done };
    const degeneration = degenerationOf({ ...outcome, ended }, tokens);
    return { ...outcome, ...(degeneration && { degeneration }) };
  });
}

/** Asks the model about one step of an episode. */
export async function expectStep(
  folder: string,
  model: DeskModel,
  episode: Episode,
  number: number,
): Promise<ExpectedStep> {
  const step = episode.steps[number];
  if (step === undefined) throw new HttpError(404, `the episode has no step ${number + 1}`);
  const { observation, degeneration } = await predicted(model, episode, number);
  return {
    model: model.name,
    observation,
    tokens: await scoreTokens(folder, model, step),
    ...(degeneration !== undefined && {
      note: `The model's answer is no good one: ${degeneration}.`,
    }),
  };
}

/** An agent goes on from the tokens of its record; a world model is asked in its own form. */
async function predicted(
  model: DeskModel,
  { goal, initialContext, firstObservation, steps }: Episode,
  number: number,
): Promise<Prediction> {
  const { sequence, action } = steps[number]!;
  const read =
    model.acting === undefined || sequence === undefined ? undefined : beforeObservation(sequence);
  const turns = steps.slice(0, number);
  const query = { goal, context: initialContext, firstObservation, turns, action };
  const [prediction] =
    read === undefined ? await model.worldModel.predict([query]) : await foresee(model, [read]);
  return prediction!;
}

/** The tokens after the prompt, with the model's log-probabilities and entropies. */
async function scoreTokens(
  folder: string,
  { engine, tokenizer }: DeskModel,
  { sequence }: Step,
): Promise<readonly TokenView[]> {
  const { maxContext, entropies } = engine.capabilities;
  if (sequence === undefined || sequence.ids.length > maxContext) return [];
  const { ids, spans } = sequence;
  const start = spans.findLast(({ kind }) => kind === "prompt")?.end ?? 0;
  const targets = Uint8Array.from(ids, (_, i) => (i >= Math.max(1, start) ? 1 : 0));
  const [result] = await engine.forward([{ ids, targets }], { entropies });
  const paw = pawOf(folder);
  return tokensOf(sequence, tokenizer).map((token, i): TokenView => {
    const at = start + i;
    if (at < 1) return token;
    const logprob = result!.logprobs[at]!;
    const entropy = result!.entropies?.[at];
    const mask = paw === undefined || token.kind !== "observation" ? {} : maskOf(logprob, paw);
    return { ...token, logprob, ...(entropy !== undefined && { entropy }), ...mask };
  });
}

function pawOf(folder: string): ReturnType<typeof trainConfigOf>["paw"] | undefined {
  try {
    return trainConfigOf(folder).paw;
  } catch {
    // Another kind of run has no mask.
    return undefined;
  }
}
