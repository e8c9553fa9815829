/** The true state of a house during an episode, and how observations describe it. */
import { adjectives, type House, serviceOf } from "./house.js";
import type { ObjectName, PlaceName, Treatment } from "./kinds.js";

/** Everything that changes during an episode; only small numbers, so that copies are cheap. */
export interface HouseState {
  readonly house: House;
  /** What observations call each object: its name, with surface noise if enabled. */
  readonly labels: readonly string[];
  room: number;
  /** The place where the agent is; -1 away from all of them. */
  at: number;
  /** The object in hand; -1 for none. */
  held: number;
  /** Bit p is set if place p is open. */
  open: number;
  /** Bit p is set if place p is a lamp that is on. */
  lit: number;
  /** Bit p is set if the agent has seen what place p holds. */
  seen: number;
  /** The place of each object; -1 in hand. */
  readonly where: Int8Array;
  /** What happened to each object, as `marks`. */
  readonly marked: Uint8Array;
}

/** Bits of `marked`. */
export const marks = { wash: 1, heat: 2, cool: 4, inspected: 8 } as const;

/** A house at the start of an episode. */
export function initialState(house: House, labels: readonly string[]): HouseState {
  return {
    house,
    labels,
    room: 0,
    at: -1,
    held: -1,
    open: house.open,
    lit: 0,
    seen: 0,
    where: house.start.slice(),
    marked: new Uint8Array(house.objects.length),
  };
}

/** An independent copy. */
export function copyState(state: HouseState): HouseState {
  return {
    house: state.house,
    labels: state.labels,
    room: state.room,
    at: state.at,
    held: state.held,
    open: state.open,
    lit: state.lit,
    seen: state.seen,
    where: state.where.slice(),
    marked: state.marked.slice(),
  };
}

/** The place where the agent is. */
export function currentPlace(state: HouseState): PlaceName | undefined {
  return state.at < 0 ? undefined : state.house.places[state.at];
}

/** The object in hand. */
export function heldObject(state: HouseState): ObjectName | undefined {
  return state.held < 0 ? undefined : state.house.objects[state.held];
}

/** Whether objects can be seen in, taken from and put into a place now. */
export function isAccessible(state: HouseState, place: number): boolean {
  const { kind } = state.house.places[place] as PlaceName;
  if (kind.preposition === undefined) return false;
  return !kind.opens || (state.open & (1 << place)) !== 0;
}

/** Whether an object has been treated. */
export function isTreated(state: HouseState, object: number, treatment: Treatment): boolean {
  return ((state.marked[object] as number) & marks[treatment]) !== 0;
}

/** Whether an object can be treated this way at all. */
export function takesTreatment(object: ObjectName, treatment: Treatment): boolean {
  return object.kind.treatments.includes(treatment);
}

/** Whether the goal is reached. */
export function goalReached(state: HouseState): boolean {
  const { family, objects, places, goalObject, goalPlace } = state.house;
  const service = serviceOf(family);
  const mark = service === undefined ? 0 : service === "light" ? marks.inspected : marks[service];
  let missing = family === "pick_two" ? 2 : 1;
  for (let o = 0; o < objects.length; o++) {
    if ((objects[o] as ObjectName).kindIndex !== goalObject) continue;
    if (((state.marked[o] as number) & mark) !== mark) continue;
    const place = state.where[o] as number;
    const there = goalPlace < 0 || (place >= 0 && places[place]?.kindIndex === goalPlace);
    if (there && --missing === 0) return true;
  }
  return false;
}

/** An object as it looks now: "clean hot mug 1". */
function describeObject(state: HouseState, object: number): string {
  const marked = state.marked[object] as number;
  let text = state.labels[object] as string;
  if ((marked & marks.cool) !== 0) text = `${adjectives.cool} ${text}`;
  if ((marked & marks.heat) !== 0) text = `${adjectives.heat} ${text}`;
  if ((marked & marks.wash) !== 0) text = `${adjectives.wash} ${text}`;
  return text;
}

/** What a place holds, as a list; "nothing" if it is empty. */
export function describeContents(state: HouseState, place: number): string {
  let text = "";
  for (let o = 0; o < state.where.length; o++) {
    if (state.where[o] !== place) continue;
    text = text === "" ? describeObject(state, o) : `${text}, ${describeObject(state, o)}`;
  }
  return text === "" ? "nothing" : text;
}

/** What one sees when standing at a place. */
export function describePlace(state: HouseState, place: number): string {
  const { name, kind, insideFirst } = state.house.places[place] as PlaceName;
  if (kind.preposition === undefined)
    return (state.lit & (1 << place)) !== 0 ? `The ${name} is on.` : `The ${name} is off.`;
  if (!isAccessible(state, place)) return `The ${name} is closed.`;
  return `${insideFirst}: ${describeContents(state, place)}.`;
}

/** The places of a room, as a list. */
export function describeRoom(house: House, room: number): string {
  return house.places
    .filter((_, place) => house.roomOf[place] === room)
    .map((place) => place.name)
    .join(", ");
}

/** The room the agent is in, and what other rooms there are. */
export function describeHouse(state: HouseState): string {
  const { house, room } = state;
  let text = `You are in the ${house.rooms[room]}: ${describeRoom(house, room)}.`;
  for (let other = 0; other < house.rooms.length; other++) {
    if (other !== room) text += ` In the ${house.rooms[other]}: ${describeRoom(house, other)}.`;
  }
  return text;
}

/** What is in hand; ends every observation, because a short history forgets it. */
export function describeHand(state: HouseState): string {
  return state.held < 0 ? "You hold nothing." : `You hold ${describeObject(state, state.held)}.`;
}

/** The initial state of every place, in the words in which visiting and opening it shows it. */
export function describeStart(house: House): string {
  const start = initialState(
    house,
    house.objects.map((object) => object.name),
  );
  return house.places
    .map(({ kind, insideFirst }, place) => {
      const seen = describePlace(start, place);
      const closed = kind.preposition !== undefined && !isAccessible(start, place);
      return closed ? `${seen} ${insideFirst}: ${describeContents(start, place)}.` : seen;
    })
    .join(" ");
}
