/**
 * What a selected transition is to predict: its own observation, or, as a control, a text that says
 * nothing about the action.
 *
 *   own        the observation that followed
 *   shuffled   the one that followed another selected transition: half of them further on, so that it
 *              comes from another episode
 *   texts      one of these texts after another: those of another world
 *
 * `until` cuts an observation at the first match of a regular expression, so that a part of it is not
 * learnt, such as lists of what is seen. What `skip` matches at its beginning is read, but not learnt.
 */
import { UserError } from "../errors.js";
import type { PawOptions } from "../objectives/paw-options.js";
import { withinTime } from "../processes/time-limit.js";
import type { Tokenizer } from "../text/tokenizer.js";
import type { SelectedTransition } from "./transitions.js";

/** Turns text into ids and back. */
export type TargetTokenizer = Pick<Tokenizer, "encode" | "decode">;

/** The settings of an update: with `every`, the others have λ = 0, and learn no observation. */
export const pawAt = (paw: PawOptions, update: number): PawOptions =>
  (update + 1) % paw.every === 0 ? paw : { ...paw, lambda: 0 };

/** The transitions with the tokens of what each is to predict in place of its observation. */
export function retarget(
  transitions: readonly SelectedTransition[],
  { targets, until, skip }: Pick<PawOptions, "targets" | "until" | "skip">,
  tokenizer: TargetTokenizer | undefined,
): readonly SelectedTransition[] {
  const needed = (): TargetTokenizer => {
    if (tokenizer !== undefined) return tokenizer;
    throw new Error(
      "paw.until, paw.skip and texts as paw.targets need the tokenizer of the episodes",
    );
  };
  const whole = until === undefined ? transitions : cutAt(transitions, until, needed());
  const own = skip === undefined ? whole : skipped(whole, skip, needed());
  if (targets === "own") return own;
  const selected = own.filter((transition) => transition.selected);
  const texts =
    targets === "shuffled"
      ? selected.map(observed)
      : targets
          .trimEnd()
          .split(/\r?\n/)
          .map((text) => needed().encode(text, { plain: true }));
  const ahead = targets === "shuffled" ? Math.floor(selected.length / 2) : 0;
  const place = new Map(selected.map((transition, at) => [transition, at]));
  return own.map((transition) => {
    const at = place.get(transition);
    return at === undefined
      ? transition
      : answered(transition, texts[(at + ahead) % texts.length]!);
  });
}

const observed = ({
  sequence,
  observationStart,
  observationEnd,
}: SelectedTransition): readonly number[] => sequence.ids.slice(observationStart, observationEnd);

/** The transition with these tokens as its observation. */
function answered(
  transition: SelectedTransition,
  observation: readonly number[],
): SelectedTransition {
  const { sequence, observationStart } = transition;
  return {
    ...transition,
    sequence: { ...sequence, ids: [...sequence.ids.slice(0, observationStart), ...observation] },
    observationEnd: observationStart + observation.length,
  };
}

/** A run that is resumed brings its expressions along, and some never end. */
const MOST_MS = 1000;

const inTime = <T>(setting: "until" | "skip", search: () => T): T =>
  withinTime(
    MOST_MS,
    search,
    () =>
      new UserError(
        `paw.${setting}: the expression looked at one observation for more than a second: give one without repetitions of repetitions, such as (a+)+`,
      ),
  );

/** The selected transitions with the tokens of the observation that end before the match. */
function cutAt(
  transitions: readonly SelectedTransition[],
  until: string,
  { decode }: TargetTokenizer,
): readonly SelectedTransition[] {
  const pattern = new RegExp(until);
  return transitions.map((transition) => {
    if (!transition.selected) return transition;
    const ids = observed(transition);
    const text = decode(ids);
    const at = inTime("until", () => text.search(pattern));
    if (at < 0) return transition;
    let kept = ids.length;
    while (kept > 0 && decode(ids.slice(0, kept)).length > at) kept--;
    return answered(transition, ids.slice(0, kept));
  });
}

/** The selected transitions with observations that begin behind the match. */
function skipped(
  transitions: readonly SelectedTransition[],
  skip: string,
  { decode }: TargetTokenizer,
): readonly SelectedTransition[] {
  const pattern = new RegExp(`^(?:${skip})`);
  return transitions.map((transition) => {
    if (!transition.selected) return transition;
    const ids = observed(transition);
    const text = decode(ids);
    const length = inTime("skip", () => pattern.exec(text)?.[0].length ?? 0);
    let left = 0;
    while (left < ids.length && decode(ids.slice(0, left)).length < length) left++;
    return { ...transition, observationStart: transition.observationStart + left };
  });
}
