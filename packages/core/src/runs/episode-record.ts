/**
 * The recorded form of an episode.
 *
 * A prompt with history starts like the prompt of the step before, and so do its tokens. Written
 * out at every step, an episode would grow with the square of its length. So such a list is written
 * as a difference: `{ "same": 40, "rest": […] }` starts with the first 40 entries of the same list
 * one step earlier.
 */
import { isDeepStrictEqual } from "node:util";
import type { Episode, Step } from "../rollout/episode.js";

type PromptPiece = Step["prompt"][number];
type Sequence = NonNullable<Step["sequence"]>;
type Span = Sequence["spans"][number];

/**
 * A recorded list: whole, or the length of the prefix it shares with the previous one, and the
 * rest.
 */
type Tail<T> = readonly T[] | { readonly same: number; readonly rest: readonly T[] };

interface SequenceRecord extends Omit<Sequence, "ids" | "spans" | "constraint"> {
  readonly ids: Tail<number>;
  readonly spans: Tail<Span>;
  /** A schema may be long, and steps often have the same. */
  readonly constraint?: Sequence["constraint"] | "same";
}

interface StepRecord extends Omit<Step, "prompt" | "sequence"> {
  readonly prompt: Tail<PromptPiece>;
  readonly sequence?: SequenceRecord;
}

/** A recorded episode. */
export interface EpisodeRecord extends Omit<Episode, "steps"> {
  readonly steps: readonly StepRecord[];
}

/** Packs an episode: every list that continues the previous step's is reduced to what is new. */
export function packEpisode(episode: Episode): EpisodeRecord {
  let before: Step | undefined;
  const steps = episode.steps.map((step): StepRecord => {
    const { prompt, sequence, ...rest } = step;
    const packed = {
      prompt: cut(prompt, before?.prompt, samePiece),
      ...rest,
      ...(sequence !== undefined && {
        sequence: {
          ...sequence,
          ids: cut(sequence.ids, before?.sequence?.ids, Object.is),
          spans: cut(sequence.spans, before?.sequence?.spans, sameSpan),
          ...(sequence.constraint !== undefined &&
            isDeepStrictEqual(sequence.constraint, before?.sequence?.constraint) && {
              constraint: "same" as const,
            }),
        },
      }),
    };
    before = step;
    return packed;
  });
  return { ...episode, steps };
}

/** Unpacks a recorded episode. */
export function unpackEpisode(record: EpisodeRecord): Episode {
  let before: Step | undefined;
  const steps = record.steps.map((packed): Step => {
    const { prompt, sequence, ...rest } = packed;
    const { constraint, ...plain } = sequence ?? {};
    const same = before?.sequence?.constraint;
    before = {
      prompt: join(prompt, before?.prompt),
      ...rest,
      ...(sequence !== undefined && {
        sequence: {
          ...plain,
          ids: join(sequence.ids, before?.sequence?.ids),
          spans: join(sequence.spans, before?.sequence?.spans),
          ...(constraint !== undefined && {
            constraint: constraint === "same" ? same! : constraint,
          }),
        },
      }),
    };
    return before;
  });
  return { ...record, steps };
}

function cut<T>(
  list: readonly T[],
  before: readonly T[] = [],
  equal: (a: T, b: T) => boolean,
): Tail<T> {
  const most = Math.min(list.length, before.length);
  let same = 0;
  while (same < most && equal(list[same]!, before[same]!)) same++;
  return same === 0 ? list : { same, rest: list.slice(same) };
}

function join<T>(tail: Tail<T>, before: readonly T[] = []): readonly T[] {
  return "rest" in tail ? [...before.slice(0, tail.same), ...tail.rest] : tail;
}

const samePiece = (a: PromptPiece, b: PromptPiece): boolean =>
  a.origin === b.origin && a.text === b.text && a.role === b.role && a.call === b.call;

const sameSpan = (a: Span, b: Span): boolean =>
  a.kind === b.kind && a.start === b.start && a.end === b.end && a.origin === b.origin;
