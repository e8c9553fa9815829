/**
 * Chooses before acting: several actions are sampled, and the one that most samples agree on is
 * taken, unless it is foreseen to be refused.
 */
import { askEngine } from "../../engine/ask.js";
import type { Sample } from "../../engine/engine.js";
import { isRemote } from "../../envs/env.js";
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  responseEndIds,
  stepPrompt,
} from "../../text/encode.js";
import { readAction } from "../../text/verbatim.js";
import type { Candidate } from "../episode.js";
import type { ActingModel, Policy, Reply, Situation } from "../policy.js";
import {
  type Forecast,
  type Foresight,
  type ForesightCost,
  type Question,
  triedOut,
} from "./foresight.js";

/** How to choose. */
export interface Choosing {
  /** Actions sampled for each step. */
  readonly candidates: number;
  /** Weight of the foreseen refusal beside the votes. */
  readonly beta: number;
  /** Without it, votes decide. */
  readonly foresight?: Foresight | undefined;
  /** What becomes of white space inside an action, in this environment. */
  readonly whiteSpace?: "keep" | "collapse" | undefined;
}

/** What choosing cost. */
export interface ChoiceCost extends ForesightCost {
  steps: number;
  /** Steps at which there was something to choose. */
  contested: number;
  /** Tokens of the actions that were taken, and of all candidates. */
  acted: number;
  candidates: number;
  /** Seconds in which candidates were sampled, and outcomes predicted. */
  sampling: number;
  predicting: number;
}

/** Nothing was spent yet. */
export const noCost = (): ChoiceCost => ({
  ...{ steps: 0, contested: 0, acted: 0, candidates: 0 },
  ...{ read: 0, sampled: 0, sampling: 0, predicting: 0 },
});

/** A chance is never taken for certain. */
const LEAST = 0.01;

/** An action with the samples that it was drawn in. */
interface Option {
  readonly action: string;
  readonly response: string;
  readonly isReadable: boolean;
  readonly sample: Sample;
  votes: number;
}

/** A model that samples several actions and takes the best. */
export function choosingPolicy(model: ActingModel, choosing: Choosing, cost: ChoiceCost): Policy {
  const { engine, tokenizer, style, sampling } = model;
  const { maxContext } = engine.capabilities;
  const { foresight, whiteSpace } = choosing;
  // Predictions branch off from the prompt; where prompts continue one another, the next step does.
  const continued = style.continuing || foresight !== undefined;
  const stop = responseEndIds(tokenizer, style).map((id) => [id]);

  /** The different actions among the samples, the most votes first. */
  const optionsOf = (samples: readonly Sample[], { tools }: Situation): readonly Option[] => {
    const options = new Map<string, Option>();
    for (const sample of samples) {
      const response = decodeResponse(tokenizer, style, sample.tokens);
      const { action, wellFormed, problem } = readAction(style, response, { tools, whiteSpace });
      const isReadable = wellFormed && problem === undefined && sample.stopReason !== "length";
      const key = isReadable ? action : `unreadable ${action}`;
      const known = options.get(key);
      if (known !== undefined) known.votes += 1;
      else options.set(key, { action, response, isReadable, sample, votes: 1 });
    }
    return [...options.values()].sort((a, b) => b.votes - a.votes);
  };

  return {
    name: "engine",
    batch: model.batch ?? Number.POSITIVE_INFINITY,
    async act(situations) {
      const encoded = situations.map((situation) =>
        stepPrompt(
          tokenizer,
          style,
          () => situation.prompt,
          situation.steps.at(-1),
          situation.tools,
        ),
      );
      const fits = encoded.map(
        ({ sequence }) => sequence.ids.length + sampling.maxTokens <= maxContext,
      );
      const requests = encoded.flatMap(({ sequence }, i) =>
        fits[i]
          ? [
              {
                prompt: sequence.ids,
                stop,
                seed: situations[i]!.seed,
                continued,
                count: choosing.candidates,
                ...sampling,
              },
            ]
          : [],
      );
      const from = performance.now();
      const samples = (await askEngine(() => engine.sample(requests))).values();
      cost.sampling += (performance.now() - from) / 1000;
      const answeredWith = (i: number, { sample }: Option) => {
        const { temperature } = sampling;
        return appendResponse(encoded[i]!.sequence, { ...sample, ids: sample.tokens, temperature });
      };
      const drawn = situations.map((situation, i) => {
        if (!fits[i]) return undefined;
        const all = samples.next().value!;
        cost.steps += 1;
        cost.candidates += all.reduce((sum, { tokens }) => sum + tokens.length, 0);
        return optionsOf(all, situation);
      });
      const asked = new Map<Option, Question>();
      drawn.forEach((options = [], i) => {
        if (options.length < 2) return;
        cost.contested += 1;
        const situation = situations[i]!;
        for (const option of options) {
          if (!option.isReadable) continue;
          const { action, response } = option;
          asked.set(option, { situation, action, response, answered: answeredWith(i, option) });
        }
      });
      const forecasts = await foreseen(asked);
      return Promise.all(
        drawn.map(async (options, i): Promise<Reply> => {
          if (options === undefined) return { response: "", overflow: true };
          const candidates = await weighed(options, forecasts, asked);
          const chosen = options[candidates.findIndex((one) => one.chosen)]!;
          const { response, sample } = chosen;
          cost.acted += sample.tokens.length;
          const { pieces } = encoded[i]!;
          return {
            response,
            candidates,
            ...(sample.stopReason === "length" && { cut: true }),
            ...(pieces !== undefined && { prompt: pieces }),
            encode: (observation, done) =>
              appendObservation(answeredWith(i, chosen), tokenizer, style, observation, done, {
                response,
                tools: situations[i]!.tools,
              }),
          };
        }),
      );
    },
  };

  async function foreseen(
    asked: ReadonlyMap<Option, Question>,
  ): Promise<ReadonlyMap<Option, Forecast>> {
    if (foresight === undefined || asked.size === 0) return new Map();
    const from = performance.now();
    const forecasts = await foresight([...asked.values()], cost);
    cost.predicting += (performance.now() - from) / 1000;
    return new Map([...asked.keys()].map((option, at) => [option, forecasts[at]!]));
  }

  async function weighed(
    options: readonly Option[],
    forecasts: ReadonlyMap<Option, Forecast>,
    asked: ReadonlyMap<Option, Question>,
  ): Promise<readonly Candidate[]> {
    const weighs = foresight !== undefined && options.length > 1;
    const scored = await Promise.all(
      options.map(async (option) => {
        const { action, votes, isReadable } = option;
        const forecast = forecasts.get(option);
        // Nothing needs to be predicted of what is no action.
        const refused = isReadable ? forecast?.refused : 1;
        const question = asked.get(option);
        const truth = weighs && question !== undefined ? await truthOf(question) : undefined;
        const score = Math.log(votes) - (weighs ? choosing.beta * logit(refused!) : 0);
        return {
          action,
          votes,
          ...(forecast?.predicted !== undefined && { predicted: forecast.predicted }),
          ...(forecast?.probability !== undefined && { probability: forecast.probability }),
          ...(weighs && { refused: refused! }),
          ...(truth && { truth }),
          score,
        };
      }),
    );
    const best = scored.reduce((top, one, at) => (one.score > scored[top]!.score ? at : top), 0);
    return scored.map((one, at) => (at === best ? { ...one, chosen: true } : one));
  }
}

/** What really follows, where that is known at once; nothing is chosen by it. */
async function truthOf({ situation, action }: Question): Promise<Candidate["truth"]> {
  return isRemote(situation.env) ? undefined : triedOut(situation, action);
}

function logit(chance: number): number {
  const bounded = Math.min(1 - LEAST, Math.max(LEAST, chance));
  return Math.log(bounded / (1 - bounded));
}
