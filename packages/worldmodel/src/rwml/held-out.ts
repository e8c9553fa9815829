/**
 * What is held out of training, and the sequences that show whether the model still predicts it.
 */
import type { TargetSequence } from "@pawl/core/engine/engine.js";
import { createRandom } from "@pawl/core/random.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { encodeResponse } from "@pawl/core/text/encode.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { mergeContinuations } from "@pawl/core/update/merge.js";
import { answerSequence } from "./filter.js";
import { policyPrompt, type Question } from "./question.js";
import { responseOf, type Triplet } from "./triplet.js";

/** Held-out sequences by what their targets are. */
export interface HeldOutSequences {
  /** The policy's responses: how it acts. */
  readonly actions: readonly TargetSequence[];
  /** The next states: what it predicts. */
  readonly states: readonly TargetSequence[];
}

/** The episodes to hold out: about `share` of the tasks, each with all of its episodes. */
export function holdOut(
  episodes: readonly Episode[],
  share: number,
  seed: number,
): ReadonlySet<Episode> {
  const tasks = [...new Set(episodes.map(({ task }) => task.id))];
  const count = Math.ceil(share * tasks.length);
  const held = new Set(createRandom(seed).shuffle(tasks).slice(0, count));
  return new Set(episodes.filter(({ task }) => held.has(task.id)));
}

/** The steps of held-out triplets; those that continue one another form one sequence. */
export function heldOutSequences(
  triplets: readonly Triplet[],
  question: Question,
  tokenizer: Tokenizer,
  style: PromptStyle,
): HeldOutSequences {
  const actions = triplets.map((triplet) => {
    const prompt = policyPrompt(tokenizer, style, triplet).ids;
    const answer = encodeResponse(tokenizer, style, responseOf(triplet));
    const targets = new Uint8Array(answer.length).fill(1);
    return { ids: [...prompt, ...answer], start: prompt.length, targets, inputs: {} };
  });
  const states = triplets.map((triplet) => answerSequence(question, triplet));
  return { actions: mergeContinuations(actions), states: mergeContinuations(states) };
}
