/** The initial state of a task, drawn from its seed: rooms, places, objects and a goal. */
import { createRandom, mixSeed, type Random } from "../../random.js";
import {
  mostObjectsOfAKind,
  mostPlacesOfAKind,
  type ObjectKind,
  type ObjectName,
  objectKinds,
  objectName,
  type PlaceName,
  placeKinds,
  placeName,
  type RoomType,
  type Service,
  unusualRooms,
  usualRooms,
} from "./kinds.js";

/** The six task families, in the order in which task numbers cycle through them. */
export const families = ["pick", "look", "clean", "heat", "cool", "pick_two"] as const;
export type Family = (typeof families)[number];

/** The splits and their numbers of tasks. */
export const splitSizes = {
  train: 10_000,
  valid_seen: 1_000,
  valid_unseen: 1_000,
  test_unseen: 1_000,
} as const;
export type Split = keyof typeof splitSizes;

/** The size of a house, and which tasks it may have. */
export interface HouseSettings {
  readonly rooms: number;
  readonly receptacles: number;
  readonly objects: number;
  readonly families: readonly Family[];
  readonly seed: number;
}

/** A house at the start of a task; never changed afterwards. */
export interface House {
  readonly family: Family;
  /** The goal in words. */
  readonly goal: string;
  /** Names of the rooms; the agent starts in the first. */
  readonly rooms: readonly string[];
  /** All places, sorted by name. */
  readonly places: readonly PlaceName[];
  /** The room of each place. */
  readonly roomOf: readonly number[];
  /** All objects, sorted by name. */
  readonly objects: readonly ObjectName[];
  /** The place where each object is at the start. */
  readonly start: Int8Array;
  /** Bit p is set if place p can be opened and is open at the start. */
  readonly open: number;
  /** The kind of object in the goal. */
  readonly goalObject: number;
  /** The kind of place it must be brought to; -1 in the family `look`. */
  readonly goalPlace: number;
}

/** The family of the task with this number. */
export function familyOf(index: number, settings: HouseSettings): Family {
  return settings.families[index % settings.families.length] as Family;
}

/** What a family needs a place for, apart from holding objects. */
export function serviceOf(family: Family): Service | undefined {
  if (family === "clean") return "wash";
  if (family === "heat" || family === "cool") return family;
  return family === "look" ? "light" : undefined;
}

// A draw fails only if no object fits the family in the rooms drawn; the next draw is independent.
const attempts = 1_000;
const shareOpenAtStart = 0.1;
// How much more likely an object is to start in another room: most should be carried between rooms.
const otherRoomFactor = 3;

/** The house of a task: the same for the same split, number and settings. */
export function generateHouse(split: Split, index: number, settings: HouseSettings): House {
  const random = createRandom(mixSeed("household", settings.seed, split, index));
  const family = familyOf(index, settings);
  for (let attempt = 0; attempt < attempts; attempt++) {
    const house = drawHouse(random, split.endsWith("_unseen"), family, settings);
    if (house !== undefined) return house;
  }
  throw new Error(
    `household: found no house for ${split}/${index} (${family}) with ${settings.rooms} rooms, ` +
      `${settings.receptacles} receptacles and ${settings.objects} objects in ${attempts} draws`,
  );
}

function drawHouse(
  random: Random,
  unseen: boolean,
  family: Family,
  settings: HouseSettings,
): House | undefined {
  const rooms = drawRooms(random, unseen ? unusualRooms : usualRooms, family, settings.rooms);
  const drawn = drawPlaces(random, rooms, family, settings.receptacles);
  if (drawn === undefined) return undefined;
  const { places, roomOf } = drawn;
  const goal = drawGoal(random, unseen, family, places, roomOf);
  if (goal === undefined) return undefined;
  const objects = drawObjects(random, unseen, family, goal, places, roomOf, settings.objects);
  if (objects === undefined) return undefined;
  let open = 0;
  for (let p = 0; p < places.length; p++) {
    if ((places[p] as PlaceName).kind.opens && random.next() < shareOpenAtStart) open |= 1 << p;
  }
  return {
    family,
    goal: goalSentence(family, goal.object, goal.place),
    rooms: rooms.map((room) => room.name),
    places,
    roomOf,
    objects: objects.names,
    start: objects.start,
    open,
    goalObject: goal.object,
    goalPlace: goal.place,
  };
}

function serves(service: Service | undefined): (kindIndex: number) => boolean {
  return (kindIndex) => placeKinds[kindIndex]?.service === service;
}

/** Different rooms in random order, one of which can have what the family needs. */
function drawRooms(
  random: Random,
  types: readonly RoomType[],
  family: Family,
  count: number,
): RoomType[] {
  const service = serviceOf(family);
  const fitting =
    service === undefined ? types : types.filter((t) => t.places.some(serves(service)));
  const first = random.pick(fitting);
  const others = random.shuffle(types.filter((type) => type !== first));
  return random.shuffle([first, ...others.slice(0, count - 1)]);
}

/** A house needs only one fridge, stove or microwave; other places may occur in every room. */
function mostInAHouse(kindIndex: number): number {
  const service = placeKinds[kindIndex]?.service;
  return service === "heat" || service === "cool" ? 1 : mostPlacesOfAKind;
}

/** Distributes the receptacles over the rooms, including what the family needs. */
function drawPlaces(
  random: Random,
  rooms: readonly RoomType[],
  family: Family,
  count: number,
): { places: PlaceName[]; roomOf: number[] } | undefined {
  const service = serviceOf(family);
  const numbers = placeKinds.map(() => 0);
  const drawn: { place: PlaceName; room: number }[] = [];
  let needed = service !== undefined;
  for (let room = 0; room < rooms.length; room++) {
    const candidates = random.shuffle([...(rooms[room] as RoomType).places]);
    if (needed) {
      const at = candidates.findIndex(serves(service));
      if (at >= 0) {
        candidates.unshift(...candidates.splice(at, 1));
        needed = false;
      }
    }
    let quota = Math.floor((count + room) / rooms.length);
    for (const kindIndex of candidates) {
      if (quota === 0) break;
      const number = (numbers[kindIndex] as number) + 1;
      if (number > mostInAHouse(kindIndex)) continue;
      numbers[kindIndex] = number;
      drawn.push({ place: placeName(kindIndex, number), room });
      quota--;
    }
    if (quota > 0) return undefined;
  }
  drawn.sort((a, b) => a.place.id - b.place.id);
  return { places: drawn.map((d) => d.place), roomOf: drawn.map((d) => d.room) };
}

function startWeights(kind: ObjectKind, unseen: boolean): readonly number[] {
  return unseen ? kind.unusual : kind.seen;
}

/** The total weight of the places where an object may start, except those of one kind. */
function startWeight(
  kind: ObjectKind,
  unseen: boolean,
  places: readonly PlaceName[],
  except: number,
): number {
  const weights = startWeights(kind, unseen);
  let total = 0;
  for (const place of places) {
    if (place.kindIndex !== except) total += weights[place.kindIndex] as number;
  }
  return total;
}

function suits(kind: ObjectKind, family: Family): boolean {
  const service = serviceOf(family);
  if (service === undefined) return true;
  return service === "light" ? kind.inspected : kind.treatments.includes(service);
}

/** The rooms that have a place of some kind, as bits. */
function roomsWith(
  places: readonly PlaceName[],
  roomOf: readonly number[],
  fits: (place: PlaceName) => boolean,
): number {
  let rooms = 0;
  for (let p = 0; p < places.length; p++) {
    if (fits(places[p] as PlaceName)) rooms |= 1 << (roomOf[p] as number);
  }
  return rooms;
}

/**
 * What to bring where, such that it is not there at the start.
 *
 * Goals that require walking are preferred: not in the room of the required appliance, or at least
 * not in every room.
 */
function drawGoal(
  random: Random,
  unseen: boolean,
  family: Family,
  places: readonly PlaceName[],
  roomOf: readonly number[],
): { object: number; place: number } | undefined {
  const service = serviceOf(family);
  const avoid =
    service === undefined
      ? roomsWith(places, roomOf, () => true)
      : roomsWith(places, roomOf, (place) => place.kind.service === service);
  for (const object of random.shuffle(objectKinds.map((_, index) => index))) {
    const kind = objectKinds[object] as ObjectKind;
    if (!suits(kind, family)) continue;
    if (family === "look") {
      if (startWeight(kind, unseen, places, -1) > 0) return { object, place: -1 };
      continue;
    }
    const near: number[] = [];
    const far: number[] = [];
    for (let index = 0; index < placeKinds.length; index++) {
      // A plausible place for the object, and not the appliance just used.
      if ((kind.usual[index] as number) + (kind.unusual[index] as number) === 0) continue;
      if (service !== undefined && placeKinds[index]?.service === service) continue;
      const rooms = roomsWith(places, roomOf, (place) => place.kindIndex === index);
      if (rooms === 0 || startWeight(kind, unseen, places, index) === 0) continue;
      const isFar = service === undefined ? rooms !== avoid : (rooms & avoid) === 0;
      (isFar ? far : near).push(index);
    }
    const targets = far.length > 0 ? far : near;
    if (targets.length > 0) return { object, place: random.pick(targets) };
  }
  return undefined;
}

/** The goal's object or objects and others around them, each at a place where its kind is found. */
function drawObjects(
  random: Random,
  unseen: boolean,
  family: Family,
  goal: { object: number; place: number },
  places: readonly PlaceName[],
  roomOf: readonly number[],
  count: number,
): { names: ObjectName[]; start: Int8Array } | undefined {
  const numbers = objectKinds.map(() => 0);
  const drawn: { name: ObjectName; place: number }[] = [];
  const goalRooms = roomsWith(places, roomOf, (place) =>
    family === "look" ? place.kind.service === "light" : place.kindIndex === goal.place,
  );
  const startWeightAt = (kindIndex: number, p: number): number => {
    const place = (places[p] as PlaceName).kindIndex;
    const weight = startWeights(objectKinds[kindIndex] as ObjectKind, unseen)[place] as number;
    if (kindIndex !== goal.object) return weight;
    // No object of the goal's kind starts at the goal, or it would be reached too early.
    if (place === goal.place) return 0;
    return (goalRooms & (1 << (roomOf[p] as number))) === 0 ? otherRoomFactor * weight : weight;
  };
  const add = (kindIndex: number): void => {
    let total = 0;
    for (let p = 0; p < places.length; p++) total += startWeightAt(kindIndex, p);
    let left = random.next() * total;
    let at = -1;
    for (let p = 0; p < places.length && left >= 0; p++) {
      const weight = startWeightAt(kindIndex, p);
      if (weight === 0) continue;
      at = p;
      left -= weight;
    }
    const number = (numbers[kindIndex] as number) + 1;
    numbers[kindIndex] = number;
    drawn.push({ name: objectName(kindIndex, number), place: at });
  };
  add(goal.object);
  if (family === "pick_two") add(goal.object);
  const others = objectKinds.flatMap((kind, index) =>
    startWeight(kind, unseen, places, index === goal.object ? goal.place : -1) > 0 ? [index] : [],
  );
  while (drawn.length < count) {
    if (others.length === 0) return undefined;
    const slot = random.int(others.length);
    const kindIndex = others[slot] as number;
    if ((numbers[kindIndex] as number) >= mostObjectsOfAKind) others.splice(slot, 1);
    else add(kindIndex);
  }
  drawn.sort((a, b) => a.name.id - b.name.id);
  return { names: drawn.map((d) => d.name), start: Int8Array.from(drawn, (d) => d.place) };
}

/** The adjective of an object that a family's treatment has been applied to. */
export const adjectives = { wash: "clean", heat: "hot", cool: "cold" } as const;

function goalSentence(family: Family, object: number, place: number): string {
  const thing = (objectKinds[object] as ObjectKind).name;
  const a = /^[aeiou]/.test(thing) ? "an" : "a";
  if (family === "look") return `Inspect ${a} ${thing} beside a lit lamp.`;
  const target = placeKinds[place];
  const where = `${target?.preposition} a ${target?.name}`;
  const service = serviceOf(family);
  if (service !== undefined && service !== "light")
    return `Put a ${adjectives[service]} ${thing} ${where}.`;
  return family === "pick_two"
    ? `Put ${a} ${thing} and another ${thing} ${where}.`
    : `Put ${a} ${thing} ${where}.`;
}
