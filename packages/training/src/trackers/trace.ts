/** An episode as a conversation, the way trackers show traces. */
import type { Episode } from "@pawl/core/rollout/episode.js";

/** A conversation and what is known about it. */
export interface Trace {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

/** The goal and what was seen as the user's words, responses as the assistant's. */
export function traceOf(episode: Episode): Trace {
  const { goal, firstObservation, steps, stop } = episode;
  const [last] = steps.slice(-1);
  return {
    messages: [
      { role: "user", content: `${goal}\n\n${firstObservation}` },
      ...steps.flatMap((step) => [
        { role: "assistant", content: step.response },
        { role: "user", content: step.observation },
      ]),
    ],
    metadata: {
      task: episode.task.id,
      type: episode.task.type,
      group: episode.group,
      attempt: episode.attempt,
      return: episode.return,
      success: episode.success,
      stop,
      valid: last?.valid ?? true,
      ...(episode.error !== undefined && { error: episode.error }),
    },
  };
}
