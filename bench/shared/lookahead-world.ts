/**
 * The household for `bench lookahead`: where it trains, the agent samples several actions for every
 * step, takes the first, and tries all of them on copies of the world. What each leads to is valued by
 * the expert, or by the agent's own value head, and recorded as the candidates' score.
 */

import type { Engine, Sample } from "@pawl/core/engine/engine.js";
import { defineEnv } from "@pawl/core/envs/define-env.js";
import { type Env, type Environment, isRemote } from "@pawl/core/envs/env.js";
import { household } from "@pawl/core/envs/household/household.js";
import type { Candidate } from "@pawl/core/rollout/episode.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import type {
  ActingModel,
  Policy,
  Reply,
  SelfPlayed,
  Situation,
} from "@pawl/core/rollout/policy.js";
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  responseEndIds,
  stepPrompt,
} from "@pawl/core/text/encode.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import { readAction } from "@pawl/core/text/verbatim.js";
import { z } from "zod";
import { quick } from "../../recipes/quick.js";
import { SIBLINGS } from "./lookahead-credit.js";

/** The discount of the expert's values. */
const GAMMA = 0.9;

export const lookingHouse = defineEnv({
  ...household,
  name: "looking-house",
  options: household.options.safeExtend({
    values: z.enum(["none", "expert", "critic"]).default("none"),
  }),
  open({ values, ...options }): Environment {
    const environment = household.open(options);
    if (values === "none") return environment;
    const own: SelfPlayed = {
      ...environment,
      policy: (model) => lookingPolicy(model, environment, values),
    };
    return own;
  },
});

/** Something to value: what an action led to, as a world and as what the agent would read. */
interface Successor {
  readonly world: Env;
  readonly result: { readonly done: boolean; readonly success: boolean };
  /** Steps that are left after it. */
  readonly left: number;
  sequence(): Sequence;
}

function lookingPolicy(
  model: ActingModel,
  environment: Environment,
  by: "expert" | "critic",
): Policy {
  const { engine, tokenizer, style, sampling } = model;
  const { maxContext } = engine.capabilities;
  const stop = responseEndIds(tokenizer, style).map((id) => [id]);
  const plain = enginePolicy(model);
  const valued =
    by === "expert" ? expertValues(environment) : criticValues(engine as Engine, stop[0]![0]!);

  async function act(situations: readonly Situation[]): Promise<readonly Reply[]> {
    const encoded = situations.map((one) =>
      stepPrompt(tokenizer, style, () => one.prompt, one.steps.at(-1), one.tools),
    );
    const fits = encoded.map(
      ({ sequence }) => sequence.ids.length + sampling.maxTokens <= maxContext,
    );
    const requests = encoded.flatMap(({ sequence }, i) =>
      fits[i]
        ? [{ prompt: sequence.ids, stop, seed: situations[i]!.seed, count: SIBLINGS, ...sampling }]
        : [],
    );
    const samples = (await engine.sample(requests)).values();
    const drawn = situations.map((_, i) => (fits[i] ? samples.next().value! : undefined));
    const options = drawn.map((all, i) =>
      all === undefined ? [] : optionsOf(all, situations[i]!, encoded[i]!.sequence),
    );
    const values = (await valued(options.flat().map(({ successor }) => successor))).values();
    return situations.map((situation, i): Reply => {
      if (drawn[i] === undefined) return { response: "", overflow: true };
      const candidates = options[i]!.map(({ successor: _, sample: __, ...one }): Candidate => {
        return { ...one, score: values.next().value! };
      });
      const [sample] = drawn[i]!;
      const response = decodeResponse(tokenizer, style, sample!.tokens);
      const { pieces, sequence } = encoded[i]!;
      return {
        response,
        candidates,
        ...(sample!.stopReason === "length" && { cut: true }),
        ...(pieces !== undefined && { prompt: pieces }),
        encode: (observation, done) =>
          appendObservation(answeredWith(sequence, sample!), tokenizer, style, observation, done, {
            response,
            tools: situation.tools,
          }),
      };
    });
  }

  const answeredWith = (prompt: Sequence, sample: Sample): Sequence =>
    appendResponse(prompt, { ...sample, ids: sample.tokens, temperature: sampling.temperature });

  /** The different actions, the one that is taken first, and what each leads to. */
  function optionsOf(
    samples: readonly Sample[],
    { env, index, tools }: Situation,
    prompt: Sequence,
  ) {
    if (isRemote(env)) throw new Error("the household is a world in this process");
    const options = new Map<
      string,
      { action: string; votes: number; chosen?: true; sample: Sample; successor: Successor }
    >();
    for (const sample of samples) {
      const response = decodeResponse(tokenizer, style, sample.tokens);
      const { action, wellFormed, problem } = readAction(style, response, {
        tools,
        whiteSpace: environment.whiteSpace,
      });
      const isReadable = wellFormed && problem === undefined && sample.stopReason !== "length";
      const key = isReadable ? action : "";
      const known = options.get(key);
      if (known !== undefined) {
        known.votes += 1;
        continue;
      }
      const world = env.clone();
      const answer = isReadable ? world.step(action) : undefined;
      const observation = answer?.observation ?? "";
      const done = answer?.done === true;
      const successor: Successor = {
        world,
        result: { done, success: answer?.info.success === true },
        left: quick.stepLimit - index - 1,
        sequence: () =>
          appendObservation(answeredWith(prompt, sample), tokenizer, style, observation, done, {
            response,
            tools,
          }),
      };
      options.set(key, {
        action: key,
        votes: 1,
        sample,
        successor,
        ...(options.size === 0 && { chosen: true }),
      });
    }
    return [...options.values()];
  }

  return {
    ...plain,
    // What is only evaluated needs no siblings.
    act: (situations, signal) =>
      situations[0]?.task.split === "train" ? act(situations) : plain.act(situations, signal),
  };
}

type Values = (successors: readonly Successor[]) => Promise<readonly number[]>;

/** γ^n, if the expert needs n more steps, and has them; otherwise 0. */
const expertValues =
  ({ expert }: Environment): Values =>
  async (successors) =>
    successors.map(({ world, result, left }) => {
      if (result.done) return result.success ? 1 : 0;
      const copy = world.clone();
      for (let steps = 1; steps <= left; steps++)
        if (copy.step(expert!(copy)).done) return GAMMA ** steps;
      return 0;
    });

/** What the head expects where the agent acts next. */
const criticValues =
  (engine: Engine, next: number): Values =>
  async (successors) => {
    const { maxContext } = engine.capabilities;
    const asked = successors.map(({ result, left, sequence }) => {
      const ids = result.done || left === 0 ? [] : [...sequence().ids, next];
      return ids.length > 0 && ids.length <= maxContext ? ids : undefined;
    });
    const sequences = asked.flatMap((ids) =>
      ids === undefined
        ? []
        : [{ ids, targets: Uint8Array.from(ids, (_, i) => (i === ids.length - 1 ? 1 : 0)) }],
    );
    const results = (
      sequences.length === 0 ? [] : await engine.forward(sequences, { values: true })
    ).values();
    return successors.map(({ result }, i) => {
      if (asked[i] === undefined) return result.success ? 10 : 0;
      return results.next().value!.values!.at(-1)!;
    });
  };
