/** What the agent can do: the commands, their effects and the reasons why they fail. */
import { adjectives } from "./house.js";
import { type ObjectName, type PlaceName, readObject, readPlace, type Treatment } from "./kinds.js";
import {
  currentPlace,
  describeContents,
  describeHouse,
  describePlace,
  describeRoom,
  type HouseState,
  heldObject,
  isAccessible,
  isTreated,
  marks,
  takesTreatment,
} from "./state.js";

/** Whether a command was carried out, and what the agent is told. */
export interface Outcome {
  readonly valid: boolean;
  readonly text: string;
}

function done(text: string): Outcome {
  return { valid: true, text };
}

function refused(text: string): Outcome {
  return { valid: false, text };
}

const unknown = refused("Unknown command.");

/** Carries out a command, or leaves the state unchanged and says why. */
export function act(state: HouseState, command: string): Outcome {
  const words = command.split(" ");
  const [verb, second, third, fourth] = words;
  switch (words.length) {
    case 1:
      return verb === "look" ? done(describeHouse(state)) : unknown;
    case 3: {
      if (verb === "inspect") return inspect(state, readObject(second, third));
      if (verb === "open" || verb === "close")
        return moveDoor(state, verb, readPlace(second, third));
      return unknown;
    }
    case 4: {
      const place = readPlace(third, fourth);
      if (verb === "go" && second === "to") return goTo(state, place);
      if (verb === "switch" && (second === "on" || second === "off"))
        return switchLamp(state, second, place);
      return unknown;
    }
    case 6: {
      const object = readObject(second, third);
      const place = readPlace(words[4], words[5]);
      if (verb === "take" && fourth === "from") return take(state, object, place);
      if (fourth !== "in" && fourth !== "on") return unknown;
      if (verb === "put") return put(state, object, fourth, place);
      if (verb === "wash" || verb === "heat" || verb === "cool")
        return treat(state, verb, object, fourth, place);
      return unknown;
    }
    default:
      return unknown;
  }
}

function goTo(state: HouseState, place: PlaceName | undefined): Outcome {
  if (place === undefined) return unknown;
  const { house } = state;
  const p = house.places.indexOf(place);
  if (p < 0) return refused(`There is no ${place.name} here.`);
  if (p === state.at) return refused(`You are already at ${place.name}.`);
  const room = house.roomOf[p] as number;
  if (room === state.room) {
    state.at = p;
    return done(lookInto(state, p));
  }
  // Another room is two steps away: the first ends inside its door, and repeating the command goes
  // on.
  state.room = room;
  state.at = -1;
  return done(`You walk into the ${house.rooms[room]}: ${describeRoom(house, room)}.`);
}

/** What one sees at a place; it is marked as seen unless the place is closed. */
function lookInto(state: HouseState, p: number): string {
  if (isAccessible(state, p)) state.seen |= 1 << p;
  return describePlace(state, p);
}

/** Why the place cannot be used from here; undefined if it can. */
function outOfReach(state: HouseState, place: PlaceName): Outcome | undefined {
  const p = state.house.places.indexOf(place);
  if (p < 0) return refused(`There is no ${place.name} here.`);
  return p === state.at ? undefined : refused(`You are not at ${place.name}.`);
}

function notHeld(state: HouseState, object: ObjectName): Outcome | undefined {
  return heldObject(state) === object ? undefined : refused(`You do not hold ${object.name}.`);
}

function misplaced(preposition: "in" | "on", place: PlaceName): Outcome | undefined {
  if (place.kind.preposition === undefined) return refused(`The ${place.name} takes nothing.`);
  return preposition === place.kind.preposition ? undefined : refused(`Things go ${place.inside}.`);
}

function moveDoor(
  state: HouseState,
  verb: "open" | "close",
  place: PlaceName | undefined,
): Outcome {
  if (place === undefined) return unknown;
  const problem = outOfReach(state, place);
  if (problem !== undefined) return problem;
  if (!place.kind.opens) return refused(`The ${place.name} has no door.`);
  const bit = 1 << state.at;
  const isOpen = (state.open & bit) !== 0;
  if (verb === "open") {
    if (isOpen) return refused(`The ${place.name} is already open.`);
    state.open |= bit;
    return done(`The ${place.name} is open now. ${lookInto(state, state.at)}`);
  }
  if (!isOpen) return refused(`The ${place.name} is already closed.`);
  state.open &= ~bit;
  return done(`The ${place.name} is closed now.`);
}

function take(
  state: HouseState,
  object: ObjectName | undefined,
  place: PlaceName | undefined,
): Outcome {
  if (object === undefined || place === undefined) return unknown;
  const problem = outOfReach(state, place);
  if (problem !== undefined) return problem;
  const { at } = state;
  const o = state.house.objects.indexOf(object);
  if (place.kind.opens && !isAccessible(state, at)) return refused(`The ${place.name} is closed.`);
  if (o < 0 || state.where[o] !== at) return refused(`There is no ${object.name} here.`);
  if (state.held >= 0) return refused("Your hands are full.");
  state.held = o;
  state.where[o] = -1;
  return done(`Taken from ${place.name}.`);
}

function put(
  state: HouseState,
  object: ObjectName | undefined,
  preposition: "in" | "on",
  place: PlaceName | undefined,
): Outcome {
  if (object === undefined || place === undefined) return unknown;
  const problem =
    outOfReach(state, place) ?? notHeld(state, object) ?? misplaced(preposition, place);
  if (problem !== undefined) return problem;
  if (!isAccessible(state, state.at)) return refused(`The ${place.name} is closed.`);
  state.where[state.held] = state.at;
  state.held = -1;
  return done(`Now ${place.inside}: ${describeContents(state, state.at)}.`);
}

function treat(
  state: HouseState,
  treatment: Treatment,
  object: ObjectName | undefined,
  preposition: "in" | "on",
  place: PlaceName | undefined,
): Outcome {
  if (object === undefined || place === undefined) return unknown;
  const problem =
    outOfReach(state, place) ?? notHeld(state, object) ?? misplaced(preposition, place);
  if (problem !== undefined) return problem;
  if (place.kind.service !== treatment)
    return refused(`You cannot ${treatment} things ${place.inside}.`);
  if (!takesTreatment(object, treatment)) return refused(`You cannot ${treatment} ${object.name}.`);
  if (!isAccessible(state, state.at)) return refused(`The ${place.name} is closed.`);
  const adjective = adjectives[treatment];
  if (isTreated(state, state.held, treatment))
    return refused(`The ${object.name} is already ${adjective}.`);
  let marked = (state.marked[state.held] as number) | marks[treatment];
  if (treatment === "heat") marked &= ~marks.cool;
  if (treatment === "cool") marked &= ~marks.heat;
  state.marked[state.held] = marked;
  return done(`The ${object.name} is ${adjective} now.`);
}

function switchLamp(state: HouseState, way: "on" | "off", place: PlaceName | undefined): Outcome {
  if (place === undefined) return unknown;
  const problem = outOfReach(state, place);
  if (problem !== undefined) return problem;
  if (place.kind.service !== "light") return refused(`The ${place.name} has no switch.`);
  const bit = 1 << state.at;
  if (((state.lit & bit) !== 0) === (way === "on"))
    return refused(`The ${place.name} is already ${way}.`);
  state.lit ^= bit;
  return done(`The ${place.name} is ${way} now.`);
}

function inspect(state: HouseState, object: ObjectName | undefined): Outcome {
  if (object === undefined) return unknown;
  const problem = notHeld(state, object);
  if (problem !== undefined) return problem;
  const place = currentPlace(state);
  if (place?.kind.service !== "light") return refused("There is no lamp here.");
  if ((state.lit & (1 << state.at)) === 0) return refused(`The ${place.name} is off.`);
  state.marked[state.held] = (state.marked[state.held] as number) | marks.inspected;
  return done(`You inspect ${object.name} beside ${place.name}.`);
}

/** The commands that would be carried out now, sorted; verbs are visited in alphabetical order. */
export function admissible(state: HouseState): string[] {
  const { house, at } = state;
  const commands: string[] = [];
  const place = currentPlace(state);
  const usable = place !== undefined && isAccessible(state, at);
  const object = heldObject(state);
  if (usable && place.kind.opens) commands.push(place.close);
  if (usable && object !== undefined) addTreatment(state, commands, "cool", object, place);
  for (let p = 0; p < house.places.length; p++) {
    if (p !== at) commands.push((house.places[p] as PlaceName).goTo);
  }
  if (usable && object !== undefined) addTreatment(state, commands, "heat", object, place);
  const lit = at >= 0 && (state.lit & (1 << at)) !== 0;
  if (lit && object !== undefined) commands.push(`inspect ${object.name}`);
  commands.push("look");
  if (place?.kind.opens && !usable) commands.push(place.open);
  if (usable && object !== undefined) commands.push(`put ${object.name} ${place.inside}`);
  if (place?.kind.service === "light") commands.push(lit ? place.switchOff : place.switchOn);
  if (usable && object === undefined) {
    for (let o = 0; o < state.where.length; o++) {
      if (state.where[o] === at)
        commands.push(`take ${(house.objects[o] as ObjectName).name} from ${place.name}`);
    }
  }
  if (usable && object !== undefined) addTreatment(state, commands, "wash", object, place);
  return commands;
}

function addTreatment(
  state: HouseState,
  commands: string[],
  treatment: Treatment,
  object: ObjectName,
  place: PlaceName,
): void {
  if (place.kind.service !== treatment || !takesTreatment(object, treatment)) return;
  if (isTreated(state, state.held, treatment)) return;
  commands.push(`${treatment} ${object.name} ${place.inside}`);
}
