/**
 * What an agent expects the world to answer, asked on its own tokens: what it reads, its response,
 * and what its prompt style writes before an observation.
 */
import { askEngine } from "@pawl/core/engine/ask.js";
import { markers } from "@pawl/core/text/prompt-compact.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import { degenerationOf, type Prediction } from "@pawl/worldmodel/model.js";
import { type DeskModel, MOST_TOKENS } from "./model-desk.js";

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
