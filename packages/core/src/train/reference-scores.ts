/**
 * The reference's log-probabilities, asked for while the policy acts.
 *
 * The reference never changes, so an engine that can score while it samples may begin as soon as a
 * step is known. What is computed together changes the last bits of the results, so it must not
 * depend on time: a request is some consecutive steps of all episodes of a group, and is sent when
 * each of them has taken these steps or is over. A resumed or replayed run makes the same requests of
 * the recorded episodes. Steps of episodes that broke later are among them for the same reason.
 */
import { ConfigError } from "../config/config-error.js";
import type { Engine } from "../engine/engine.js";
import {
  type Episode,
  type EpisodePlan,
  type Group,
  ownSteps,
  type Step,
} from "../rollout/episode.js";
import type { Sequence } from "../text/sequence.js";
import { actionSequence, positionsOf, type Transition } from "../update/transitions.js";
import type { RlOptions } from "./rl-types.js";

/** Sequences per request, about: some 10,000 tokens of the paper's ALFWorld prompts. */
const SEQUENCES = 16;
/** Requests that are sent and not answered yet. Sampling goes before them. */
const AT_ONCE = 16;

/** Where the reference's log-probabilities come from. */
export interface ReferenceScores {
  /** Callbacks of a rollout: what they hear of is asked for. */
  watch(groupSize: number): Watcher;
  /** One number for each token of every transition's prompt and action; asks for what is missing. */
  of(groups: readonly Group[], transitions: readonly Transition[]): Promise<ReferenceResults>;
}

/** Follows a rollout. */
interface Watcher {
  onStep(plan: Pick<EpisodePlan, "group" | "attempt" | "fork">, steps: readonly Step[]): void;
  onEpisode(episode: Episode): void;
}

/** The reference's log-probabilities of all transitions. */
interface ReferenceResults {
  readonly logprobs: readonly Float32Array[];
  /** The share of the transitions whose log-probabilities had come before they were asked for here. */
  readonly ahead: number;
}

/** Settings that decide whether the reference scores while the policy acts. */
export type ScoringOptions = Pick<RlOptions, "objective" | "overlap" | "scoreWhileActing">;

/** Throws if the setting asks for what is not done. */
export function checkScoring({ objective, overlap, scoreWhileActing }: ScoringOptions): void {
  if (scoreWhileActing !== true) return;
  if (objective.kl === 0)
    throw new ConfigError(
      "scoreWhileActing: there is no reference to score with, because objective.kl is 0; leave it out, or set objective.kl",
    );
  if (overlap > 0)
    throw new ConfigError(
      "scoreWhileActing: with overlap 1 the engine learns while the policy acts; leave it out, or set overlap to 0",
    );
}

/** Undefined if there is no reference, or it is to score after acting, all at once. */
export function referenceScores(
  engine: Engine,
  { objective, scoreWhileActing = true }: ScoringOptions,
): ReferenceScores | undefined {
  const { scoresBesideSampling = false } = engine.capabilities;
  if (objective.kl === 0 || !scoreWhileActing || !scoresBesideSampling) return undefined;
  const known = new WeakMap<Sequence, Float32Array>();
  const asked = new WeakMap<Sequence, Promise<void>>();
  const send = createSender(AT_ONCE);

  const ask = (steps: readonly Sequence[]): Promise<void> => {
    const answered = send(async () => {
      const wanted = steps.map((sequence) => actionSequence(positionsOf(sequence)));
      const results = await engine.forward(wanted, { weights: "reference" });
      for (const [i, sequence] of steps.entries()) known.set(sequence, results[i]!.logprobs);
    });
    for (const sequence of steps) asked.set(sequence, answered);
    return answered;
  };

  return {
    watch(groupSize) {
      const groups = new Map<number, Progress[]>();
      const sent = new Map<number, number>();
      const look = (group: number, attempt: number, progress: Progress): void => {
        const attempts =
          groups.get(group) ??
          Array.from({ length: groupSize }, () => ({ steps: [], over: false }));
        // An episode that is over may still be heard of.
        if (attempts[attempt]!.over) return;
        attempts[attempt] = progress;
        groups.set(group, attempts);
        let next = sent.get(group) ?? 0;
        for (; isReady(attempts, next); next++) {
          // What fails is asked for again when it is needed, and is reported then.
          ask(requestOf(attempts, next)).catch(() => undefined);
        }
        sent.set(group, next);
      };
      return {
        onStep: ({ group, attempt, fork }, steps) =>
          look(group, attempt, { steps: steps.slice(fork?.step ?? 0), over: false }),
        onEpisode: (episode) =>
          look(episode.group, episode.attempt, { steps: ownSteps(episode), over: true }),
      };
    },

    async of(groups, transitions) {
      const come = transitions.filter(({ sequence }) => known.has(sequence)).length;
      const requests = groups.flatMap(requestsOf);
      const answers = requests.map((steps) => asked.get(steps[0]!) ?? ask(steps));
      await Promise.allSettled(answers);
      await Promise.all(requests.filter((steps) => !known.has(steps[0]!)).map(ask));
      return {
        logprobs: transitions.map(({ sequence }) => known.get(sequence)!),
        ahead: come / transitions.length,
      };
    },
  };
}

/** How far an episode has come. */
interface Progress {
  readonly steps: readonly Step[];
  readonly over: boolean;
}

const stepsPerRequest = (attempts: readonly Progress[]): number =>
  Math.ceil(SEQUENCES / attempts.length);

/** Whether all of a group's steps for a request have been taken, and there are any. */
function isReady(attempts: readonly Progress[], request: number): boolean {
  const end = (request + 1) * stepsPerRequest(attempts);
  return (
    attempts.every(({ steps, over }) => over || steps.length >= end) &&
    requestOf(attempts, request).length > 0
  );
}

/** The steps of a request, by attempt. */
function requestOf(attempts: readonly Progress[], request: number): readonly Sequence[] {
  const count = stepsPerRequest(attempts);
  return attempts.flatMap(({ steps }) =>
    steps
      .slice(request * count, (request + 1) * count)
      .flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence])),
  );
}

/** All requests of a group that is over. */
function requestsOf({ episodes }: Group): readonly (readonly Sequence[])[] {
  const attempts = episodes.map((episode) => ({ steps: ownSteps(episode), over: true }));
  const requests: (readonly Sequence[])[] = [];
  while (isReady(attempts, requests.length)) requests.push(requestOf(attempts, requests.length));
  return requests;
}

/**
 * Sends requests in order, so many at once, from the next turn of the event loop on: a rollout that
 * has just told of its steps asks the engine for the next ones first.
 */
function createSender(atOnce: number): (request: () => Promise<void>) => Promise<void> {
  const waiting: (() => Promise<void>)[] = [];
  let open = 0;
  const pump = (): void => {
    while (open < atOnce && waiting.length > 0) {
      open += 1;
      void waiting.shift()!().finally(() => {
        open -= 1;
        pump();
      });
    }
  };
  return (request) =>
    new Promise((resolve, reject) => {
      waiting.push(() => request().then(resolve, reject));
      setImmediate(pump);
    });
}
