/**
 * A program that is to go on from a state of an earlier episode: it is run again, and what it asks
 * first is answered as it was then, without sampling. Who asks otherwise than before does not repeat
 * itself, and has no state to go back to.
 */
import type { Sample } from "@pawl/core/engine/engine.js";
import type { Fork, Step } from "@pawl/core/rollout/episode.js";
import type { Sampler } from "@pawl/core/rollout/scheduler.js";
import { positionsOf } from "@pawl/core/update/transitions.js";

/** The answers of an earlier episode, and then those of a sampler. */
export interface RepeatedAnswers extends Sampler {
  /** Why what was played does not begin as the earlier episode does; undefined if it does. */
  problemOf(steps: readonly Step[]): Error | undefined;
}

/** Answers the questions before the fork's step as its episode was answered; all others it passes on. */
export function repeatAnswers({ episode, step }: Fork, sampler: Sampler): RepeatedAnswers {
  const before = episode.steps.slice(0, step);
  let asked = 0;
  let asksAnew: Error | undefined;
  const differs = (at: number): Error =>
    new Error(
      `rollout.branch: the agent does not repeat itself: answered as before, its step ${at + 1} is another; set rollout.branch.points to 0`,
    );
  return {
    async sample(request, signal, hear) {
      const at = asked++;
      if (at >= before.length) return sampler.sample(request, signal, hear);
      const { prompt, sample } = answered(before[at]!);
      if (!isSame(prompt, request.prompt)) {
        // A program may hide it, and go on with nothing.
        asksAnew ??= differs(at);
        throw asksAnew;
      }
      hear?.(sample.tokens);
      return sample;
    },
    problemOf(steps) {
      if (asksAnew !== undefined) return asksAnew;
      const at = before.findIndex(
        (one, i) =>
          steps[i]?.observation !== one.observation ||
          !isSame(steps[i].sequence!.ids, one.sequence!.ids),
      );
      if (at >= 0) return differs(at);
      return steps.length > before.length ? undefined : differs(before.length);
    },
  };
}

const isSame = (a: ArrayLike<number>, b: ArrayLike<number>): boolean =>
  a.length === b.length && Array.from(a).every((id, i) => id === b[i]);

/** What a recorded step was asked, and what was sampled. */
function answered({ sequence, cut }: Step): {
  readonly prompt: readonly number[];
  readonly sample: Sample;
} {
  const { ids, logprobs = [], sampledLogprobs } = sequence!;
  const { actionStart, actionEnd } = positionsOf(sequence!);
  return {
    prompt: ids.slice(0, actionStart),
    sample: {
      ...{ tokens: ids.slice(actionStart, actionEnd), logprobs },
      ...(sampledLogprobs && { sampledLogprobs }),
      stopReason: cut ? "length" : "stop",
    },
  };
}
