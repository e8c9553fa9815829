/** What a checkpoint expected at a recorded step: its answer in the world's place, and each token. */
import { HttpError } from "@pawl/core/http/http-server.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import type { Prediction } from "@pawl/worldmodel/model.js";
import { maskOf } from "../report/predictions.js";
import type { TokenView } from "../report/views.js";
import type { ExpectedStep } from "./api.js";
import { tokensOf } from "./episode-view.js";
import { beforeObservation, foresee } from "./foresee.js";
import type { DeskModel } from "./model-desk.js";

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
