import type { Facts } from "./logic.js";
import type { Tracker } from "./tracker.js";

/** What the original makes of a turn's transcript: observation, tracked infos and events. */

/** Infos that a story prints between tags once it is told to, in the order in which they are cut. */
export const INFOS = ["inventory", "description", "moves", "score"] as const;
type Info = (typeof INFOS)[number];

/** How observations look: without prompt and status line, or with. */
export type ObservationStyle = "tw" | "plain";

/** A turn's text, taken apart. */
export interface TurnText {
  readonly observation: string;
  readonly infos: ReadonlyMap<Info, string>;
  /** Names of the actions that succeeded, in order. */
  readonly events: readonly string[];
}

/** The original's buffer holds this many characters. */
const LONGEST = 8191;

/** The transcript in a style; `tw` looks for the prompt, which is the last `>` anywhere. */
export function inStyle(transcript: string, style: ObservationStyle): string {
  const text = transcript.slice(0, LONGEST);
  return style === "plain" ? text : text.slice(0, text.lastIndexOf(">") - 1).slice(1);
}

const GROUP = /\[[^\]]*\]\n?/g;
const SUCCEEDED = " - succeeded";

const PATTERNS = INFOS.map(
  (info) => [info, new RegExp(`<${info}>\\n([\\s\\S]*)</${info}>`)] as const,
);

/** Takes a turn's text apart; groups in square brackets vanish, whatever they say. */
export function takeApart(text: string): TurnText {
  let rest = text;
  const infos = new Map<Info, string>();
  for (const [info, pattern] of PATTERNS) {
    const match = pattern.exec(rest);
    if (match === null) continue;
    infos.set(info, withoutGroups(match[1]!).rest.trim());
    rest = rest.replace(pattern, "");
  }
  const { rest: observation, groups } = withoutGroups(rest);
  const events = groups
    .filter((group) => group.includes(SUCCEEDED))
    .map((group) => group.slice(1, group.indexOf(SUCCEEDED)))
    .filter((event) => !/[()]/.test(event));
  return { observation, infos, events };
}

function withoutGroups(text: string): {
  readonly rest: string;
  readonly groups: readonly string[];
} {
  const groups = text.match(GROUP) ?? [];
  return { rest: groups.reduce((left, group) => left.replaceAll(group, ""), text), groups };
}

/** A moment of a game, with what the turn before it showed. Immutable: a copy is the moment itself. */
export interface Moment {
  readonly facts: Facts;
  readonly observation: string;
  readonly score: number;
  readonly won: boolean;
  readonly lost: boolean;
  /** Whether the turn did something. */
  readonly acted: boolean;
}

/** A game as those who play it know it. */
export interface PlayedGame {
  readonly tracker: Tracker;
  /** The facts at the start. */
  readonly world: Facts;
  /** What the player is told to do; may be empty. */
  readonly objective: string;
  /** The largest score; infinite if a quest can be repeated. */
  readonly maxScore: number;
}

/** A game that can be started, and gone on with from any of its moments. */
export interface Play {
  readonly game: PlayedGame;
  readonly start: Moment;
  // Methods, so that each kind of game may ask for its own moments.
  step(moment: Moment, command: string): Moment;
  /** What its expert would type. */
  advice(moment: Moment): string;
}
