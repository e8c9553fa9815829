/**
 * Transitions: the steps of an update as training samples (h_t, a_t, o_{t+1}), in the order of
 * groups, episodes and steps. Broken episodes have none.
 */
import type { TokenNumbers } from "../advantages/advantages.js";
import type { TargetSequence } from "../engine/engine.js";
import type { Episode, Group } from "../rollout/episode.js";
import { drawnLogprobs, type Sequence, type SpanKind } from "../text/sequence.js";

/** One step of an episode with the positions of its tokens. */
export interface Transition {
  /** Indices into the tables of advantages: groups × episodes × steps. */
  readonly group: number;
  readonly episode: number;
  readonly step: number;
  readonly source: Episode;
  readonly sequence: Sequence;
  /** Prompt: `[0, actionStart)`, action: `[actionStart, actionEnd)`. */
  readonly actionStart: number;
  readonly actionEnd: number;
  /** The observation; a chat template may write something before and after it. */
  readonly observationStart: number;
  readonly observationEnd: number;
  /** The temperature the action was sampled at, which it is learnt at too. */
  readonly temperature: number;
  /** Log-probabilities of the action's tokens at that temperature; undefined if not recorded. */
  readonly logprobs: readonly number[] | undefined;
}

/** All steps of all unbroken episodes, in order. */
export function transitionsOf(groups: readonly Group[]): readonly Transition[] {
  return groups.flatMap((group, g) =>
    group.episodes.flatMap((source, e) =>
      source.stop === "broken"
        ? []
        : source.steps.map((_, step) => ({
            group: g,
            episode: e,
            step,
            source,
            ...tokensOf(source, step),
          })),
    ),
  );
}

const ORDER: readonly SpanKind[] = ["prompt", "action", "observation"];
/** What a chat template writes around an observation comes after the action too. */
const rankOf = (kind: SpanKind): number =>
  kind === "template" ? ORDER.length - 1 : ORDER.indexOf(kind);

function tokensOf(episode: Episode, step: number) {
  const where = () => `step ${step} of attempt ${episode.attempt} at task ${episode.task.id}`;
  const { sequence } = episode.steps[step]!;
  if (sequence === undefined)
    throw new Error(
      `${where()} has no tokens: policy ${episode.policy} is not a model that can be trained; use an engine's policy`,
    );
  return positionsOf(sequence, where);
}

/** Where the parts of a step's tokens are. */
export function positionsOf(sequence: Sequence, where: () => string = () => "a step") {
  const { spans, ids, temperature = 1 } = sequence;
  const logprobs = drawnLogprobs(sequence);
  let rank = 0;
  let actionStart = 0;
  let actionEnd = 0;
  let observationStart = 0;
  let observationEnd = 0;
  // A prompt with the whole history has about a hundred spans, and every step has a prompt: one
  // pass only.
  for (const { kind, start, end } of spans) {
    const next = rankOf(kind);
    if (next < rank)
      throw new Error(
        `${where()}: expected spans in the order ${ORDER.join(", ")}, found ${spans.map((span) => span.kind).join(", ")}`,
      );
    rank = next;
    if (kind === "observation") {
      if (observationEnd === 0) observationStart = start;
      observationEnd = end;
    }
    if (kind !== "action") continue;
    if (actionEnd === 0) actionStart = start;
    actionEnd = end;
  }
  if (actionStart < 1 || actionEnd <= actionStart || actionEnd > ids.length)
    throw new Error(
      `${where()}: expected a prompt and an action of one token or more each, found an action [${actionStart}, ${actionEnd}) of ${ids.length} tokens`,
    );
  if (logprobs !== undefined && logprobs.length !== actionEnd - actionStart)
    throw new Error(
      `${where()}: the action has ${actionEnd - actionStart} tokens, but ${logprobs.length} log-probabilities`,
    );
  if (observationEnd === 0) [observationStart, observationEnd] = [actionEnd, actionEnd];
  const action = { actionStart, actionEnd, observationStart, observationEnd };
  return { sequence, ...action, temperature, logprobs };
}

/**
 * Prompts and actions with the action as target, at its sampling temperature: what to ask an engine
 * for before an update is prepared.
 */
export function actionSequences(transitions: readonly Transition[]): readonly TargetSequence[] {
  return transitions.map(actionSequence);
}

/** The same of one step. */
export function actionSequence({
  sequence,
  actionStart,
  actionEnd,
  temperature,
}: ReturnType<typeof positionsOf>): TargetSequence {
  const temperatures = actionTemperatures(temperature, actionEnd, actionStart, actionEnd);
  const { constraint } = sequence;
  return {
    ...(constraint && { constraints: [{ start: actionStart, end: actionEnd, constraint }] }),
    ids: sequence.ids.slice(0, actionEnd),
    targets: new Uint8Array(actionEnd).fill(1, actionStart),
    ...(temperatures && { temperatures }),
  };
}

/**
 * Temperatures of this many tokens, where `[start, end)` is an action; undefined if all are 1.
 * Observations stay at 1: the world model's predictions are not sampled.
 */
export function actionTemperatures(
  temperature: number,
  length: number,
  start: number,
  end: number,
): Float32Array | undefined {
  if (temperature === 1) return undefined;
  return new Float32Array(length).fill(1).fill(temperature, start, end);
}

/**
 * Per-token results of `actionSequences`, action tokens only: groups × episodes × steps × tokens.
 */
export function actionTokens(
  groups: readonly Group[],
  transitions: readonly Transition[],
  results: readonly ArrayLike<number>[],
): TokenNumbers {
  const table: number[][][][] = groups.map((group) => group.episodes.map(() => []));
  transitions.forEach(({ group, episode, actionStart, actionEnd }, i) => {
    table[group]![episode]!.push(Array.from(results[i]!).slice(actionStart, actionEnd));
  });
  return table;
}
