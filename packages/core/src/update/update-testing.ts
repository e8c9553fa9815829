/** Small updates for tests: every token id shows what it belongs to. */
import type { Episode, Group, Step } from "../rollout/episode.js";
import type { Span } from "../text/sequence.js";

/** A step by its token counts and log-probabilities. */
interface StepSketch {
  /** Log-probability of each action token. */
  readonly action: readonly number[];
  readonly observation?: number;
  readonly prompt?: number;
  readonly reward?: number;
  readonly words?: string;
}

/** An episode by its steps. */
export interface EpisodeSketch {
  readonly steps: readonly StepSketch[];
  readonly broken?: boolean;
}

/**
 * Token ids of a step: 100 for prompts, 200 for actions, 300 for observations, plus 10 × the step.
 */
export const ids = (kind: 100 | 200 | 300, step: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => kind + 10 * step + i);

function stepOf(sketch: StepSketch, t: number): Step {
  const { action, observation = 2, prompt = 2, reward = 0, words = `step ${t}` } = sketch;
  const parts = [ids(100, t, prompt), ids(200, t, action.length), ids(300, t, observation)];
  const kinds = ["prompt", "action", "observation"] as const;
  const spans: Span[] = [];
  let start = 0;
  parts.forEach((part, k) => {
    if (part.length > 0)
      spans.push({ kind: kinds[k]!, start, end: start + part.length, origin: "test" });
    start += part.length;
  });
  return {
    prompt: [],
    response: words,
    action: words,
    wellFormed: true,
    valid: true,
    observation: `after ${words}`,
    reward,
    sequence: { ids: parts.flat(), spans, logprobs: action },
  };
}

/** Groups of episodes from sketches: groups × episodes. */
export function groupsOf(sketches: readonly (readonly EpisodeSketch[])[]): readonly Group[] {
  return sketches.map((episodes, index) => {
    const task = { id: `train/${index}`, split: "train", type: "test" };
    return {
      index,
      task,
      episodes: episodes.map(
        ({ steps, broken = false }, attempt): Episode => ({
          task,
          group: index,
          attempt,
          seed: 0,
          policy: "test",
          goal: `goal ${index}`,
          firstObservation: "start",
          steps: steps.map(stepOf),
          return: steps.reduce((total, step) => total + (step.reward ?? 0), 0),
          success: false,
          stop: broken ? "broken" : "done",
        }),
      ),
    };
  });
}
