/**
 * The scripted players. The expert sees the true state and takes the first step of the shortest
 * plan. The seeker plans with what it has seen, and until that is enough looks into one place after
 * another.
 *
 * A plan is one trip (two in `pick_two`): fetch an object, treat it if the family requires it, and
 * bring it to its goal. All choices of object, appliance and goal place are compared by their
 * number of steps, from any state an episode can reach. A wrong object in hand is put down on the
 * way.
 */
import { type House, serviceOf } from "./house.js";
import type { ObjectName, PlaceName } from "./kinds.js";
import { type HouseState, isAccessible, isTreated } from "./state.js";

/** Fetch an object, treat or inspect it somewhere (-1: not needed), bring it to a place. */
interface Trip {
  readonly object: number;
  readonly service: number;
  readonly target: number;
}

/** The expert's next command. */
export function expertCommand(state: HouseState): string {
  const all = trips(state, () => true);
  return stepOf(state, bestTrip(state, all));
}

/**
 * The seeker's next command: the expert's once it has seen an object it needs, otherwise on to the
 * next place it has not looked into: down this room's list from where it stands, then from the
 * start of the list, then in other rooms. An imitator does not need to remember the way, only to
 * find its position in the list.
 */
export function seekerCommand(state: HouseState): string {
  const { house, at, seen, room } = state;
  const known = trips(state, (object) => {
    const place = state.where[object] as number;
    return place < 0 || (seen & (1 << place)) !== 0;
  });
  if (known.length > 0) return stepOf(state, bestTrip(state, known));
  const hidden = placesWhere(house, (place) => place.kind.preposition !== undefined).filter(
    (p) => (seen & (1 << p)) === 0,
  );
  if (hidden.includes(at)) return (house.places[at] as PlaceName).open;
  const here = hidden.filter((p) => house.roomOf[p] === room);
  const next = here.find((p) => p > at) ?? here[0] ?? (hidden[0] as number);
  return (house.places[next] as PlaceName).goTo;
}

function placesWhere(house: House, fits: (place: PlaceName) => boolean): number[] {
  return house.places.flatMap((place, p) => (fits(place) ? [p] : []));
}

/** Every trip that brings one known object of the goal's kind to its goal. */
function trips(state: HouseState, isKnown: (object: number) => boolean): Trip[] {
  const { house } = state;
  const service = serviceOf(house.family);
  const targets =
    house.goalPlace < 0 ? [-1] : placesWhere(house, (place) => place.kindIndex === house.goalPlace);
  const services =
    service === undefined ? [-1] : placesWhere(house, (place) => place.kind.service === service);
  const result: Trip[] = [];
  for (let object = 0; object < house.objects.length; object++) {
    if (house.objects[object]?.kindIndex !== house.goalObject || !isKnown(object)) continue;
    const treated =
      service !== undefined && service !== "light" && isTreated(state, object, service);
    // Objects that are at their goal and need nothing more are already done.
    if (targets.includes(state.where[object] as number) && (treated || service === undefined))
      continue;
    for (const place of treated ? [-1] : services) {
      for (const target of targets) result.push({ object, service: place, target });
    }
  }
  return result;
}

function bestTrip(state: HouseState, all: readonly Trip[]): Trip {
  const objects = new Set(all.map((trip) => trip.object));
  const two = state.house.family === "pick_two" && objects.size === 2;
  let best = all[0] as Trip;
  let fewest = Number.POSITIVE_INFINITY;
  for (const first of all) {
    // Two are missing and one is in hand: it goes first.
    if (two && objects.has(state.held) && first.object !== state.held) continue;
    for (const second of two ? all : [undefined]) {
      if (second?.object === first.object) continue;
      const steps = stepsOf(state, second === undefined ? [first] : [first, second]);
      if (steps < fewest) {
        fewest = steps;
        best = first;
      }
    }
  }
  return best;
}

/** The number of steps that a sequence of trips takes. */
function stepsOf(state: HouseState, plan: readonly Trip[]): number {
  const { house } = state;
  let { room, at, held, open, lit } = state;
  let steps = 0;
  const visit = (place: number): void => {
    if (place !== at) steps += house.roomOf[place] === room ? 1 : 2;
    at = place;
    room = house.roomOf[place] as number;
    const bit = 1 << place;
    if (house.places[place]?.kind.opens && (open & bit) === 0) {
      open |= bit;
      steps++;
    }
  };
  for (const { object, service, target } of plan) {
    if (held !== object) {
      if (held >= 0) steps++;
      visit(state.where[object] as number);
      steps++;
    }
    if (service >= 0) {
      visit(service);
      steps++;
      if (house.family === "look" && (lit & (1 << service)) === 0) {
        lit |= 1 << service;
        steps++;
      }
    }
    if (target >= 0) {
      visit(target);
      steps++;
    }
    held = -1;
  }
  return steps;
}

/** The next command of a trip. */
function stepOf(state: HouseState, trip: Trip): string {
  const { house, at, held } = state;
  const place = (p: number): PlaceName => house.places[p] as PlaceName;
  const object = (o: number): ObjectName => house.objects[o] as ObjectName;
  const reach = (p: number): string | undefined => {
    if (at !== p) return place(p).goTo;
    return place(p).kind.opens && !isAccessible(state, p) ? place(p).open : undefined;
  };
  if (held !== trip.object) {
    if (held >= 0 && at >= 0 && isAccessible(state, at))
      return `put ${object(held).name} ${place(at).inside}`;
    const source = state.where[trip.object] as number;
    return reach(source) ?? `take ${object(trip.object).name} from ${place(source).name}`;
  }
  const { name } = object(held);
  if (trip.service >= 0) {
    const service = place(trip.service);
    if (service.kind.service !== "light")
      return reach(trip.service) ?? `${service.kind.service} ${name} ${service.inside}`;
    const lit = (state.lit & (1 << trip.service)) !== 0;
    return reach(trip.service) ?? (lit ? `inspect ${name}` : service.switchOn);
  }
  return reach(trip.target) ?? `put ${name} ${place(trip.target).inside}`;
}
