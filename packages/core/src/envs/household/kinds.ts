/**
 * What a house is made of: kinds of rooms, places and objects, and where objects are usually found.
 *
 * Every name is one word, and room types that training never shows are named with words that it
 * does ("office kitchen"), so that a vocabulary built on the train split covers all splits.
 */

/** What a place can do to the object in hand, or `light` for a lamp. */
export type Service = "wash" | "heat" | "cool" | "light";

/** The three treatments that change an object. */
export type Treatment = Exclude<Service, "light">;

/** A kind of place: a receptacle, an appliance or a lamp. */
export interface PlaceKind {
  readonly name: string;
  /** How objects are put there; a lamp takes nothing. */
  readonly preposition: "in" | "on" | undefined;
  /** Whether it has a door or lid, which hides its contents while closed. */
  readonly opens: boolean;
  readonly service: Service | undefined;
}

/** A kind of object, what can be done with it, and where it is found. */
export interface ObjectKind {
  readonly name: string;
  readonly treatments: readonly Treatment[];
  /** Whether tasks ask to inspect it by the light of a lamp. */
  readonly inspected: boolean;
  /** Where it is mostly found in train and valid_seen tasks, by place kind index. */
  readonly usual: readonly number[];
  /**
   * How likely each kind of place is at the start of valid_unseen tasks; never positive where
   * `usual` is.
   */
  readonly unusual: readonly number[];
  /**
   * The same for train and valid_seen: usual, or sometimes out of place, but never where `unusual`
   * is.
   */
  readonly seen: readonly number[];
}

/** A type of room: its name and its places, each repeated as often as a room may have it. */
export interface RoomType {
  readonly name: string;
  readonly places: readonly number[];
}

function place(
  name: string,
  preposition: PlaceKind["preposition"],
  options: { opens?: boolean; service?: Service } = {},
): PlaceKind {
  return { name, preposition, opens: options.opens ?? false, service: options.service };
}

/** All kinds of places, sorted by name. */
export const placeKinds: readonly PlaceKind[] = [
  place("basket", "in"),
  place("bed", "on"),
  place("box", "in", { opens: true }),
  place("cabinet", "in", { opens: true }),
  place("chair", "on"),
  place("counter", "on"),
  place("desk", "on"),
  place("drawer", "in", { opens: true }),
  place("fridge", "in", { opens: true, service: "cool" }),
  place("lamp", undefined, { service: "light" }),
  place("microwave", "in", { opens: true, service: "heat" }),
  place("shelf", "on"),
  place("sink", "in", { service: "wash" }),
  place("sofa", "on"),
  place("stove", "on", { service: "heat" }),
  place("table", "on"),
  place("tub", "in"),
  place("wardrobe", "in", { opens: true }),
];

function kindIndex(name: string): number {
  const index = placeKinds.findIndex((kind) => kind.name === name);
  if (index < 0) throw new Error(`household: "${name}" is not a kind of place`);
  return index;
}

/** Reads "fridge 3, counter 2" or "shelf, desk" (equally likely) into weights by place kind. */
function weights(text: string): readonly number[] {
  const result = placeKinds.map(() => 0);
  for (const item of text.split(", ")) {
    const [name = "", weight = "1"] = item.split(" ");
    result[kindIndex(name)] = Number(weight);
  }
  return result;
}

/**
 * The weight of each place that is neither usual nor unusual for an object: about a third of the
 * objects are out of place. Otherwise a learner would never have to search, only remember where
 * objects always are.
 */
const astray = 0.6;

function readObjectKind(row: string): ObjectKind {
  const [name = "", abilities = "", often = "", rarely = ""] = row
    .split("|")
    .map((cell) => cell.trim());
  const words = abilities.split(" ");
  const usual = weights(often);
  const unusual = weights(rarely);
  return {
    name,
    treatments: (["wash", "heat", "cool"] as const).filter((one) => words.includes(one)),
    inspected: words.includes("inspect"),
    usual,
    unusual,
    seen: placeKinds.map(({ preposition }, p) =>
      usual[p] === 0 && unusual[p] === 0 && preposition !== undefined
        ? astray
        : (usual[p] as number),
    ),
  };
}

/**
 * All kinds of objects, sorted by name: what is done with them, usual and unusual places.
 *
 * What is unusual for one object is usual for similar ones, so that something transfers from train
 * to valid_unseen: an agent that has searched drawers for tomatoes may do so for apples.
 */
export const objectKinds: readonly ObjectKind[] = `
  apple | wash heat cool | fridge 4, counter 3, table 2, shelf, desk, box | cabinet, sink, drawer, chair
  book | inspect | shelf 5, desk 3, bed 2, table, box | sofa, chair, drawer, cabinet, wardrobe
  bottle | wash cool | fridge 3, shelf 3, counter 2, tub, desk | cabinet, table, sink, box, basket
  bowl | wash heat cool | cabinet 4, counter 2, table 2, fridge, desk | shelf, sink, drawer, chair
  bread | heat cool | counter 4, table 3, cabinet 2, drawer, chair | fridge, shelf, desk, box
  cloth | wash | basket 4, sink 2, drawer 2, counter, tub | cabinet, shelf, chair, box
  egg | heat cool | fridge 5, counter 2, cabinet, sink, box | table, drawer, shelf, desk
  key | inspect | drawer 3, table 3, box 2, shelf, sofa, counter | desk, cabinet, bed, chair, basket
  knife | wash | drawer 5, counter 2, sink 2, table, shelf | cabinet, desk, box, basket
  mug | wash heat cool | cabinet 3, desk 3, table 2, sink, drawer | counter, shelf, chair, fridge
  pan | wash cool | stove 5, cabinet 3, sink, shelf | counter, table, drawer, box
  pen | inspect | desk 5, drawer 3, table, chair, cabinet | shelf, bed, box, sofa, counter
  phone | inspect | bed 3, desk 3, sofa 2, table, counter | drawer, shelf, chair, box
  pillow |  | bed 5, sofa 4, chair 2, wardrobe | box, basket, shelf, cabinet, desk
  plate | wash heat cool | cabinet 4, counter 2, table 2, shelf, chair | sink, desk, drawer, fridge
  potato | wash heat cool | counter 3, cabinet 3, sink 2, drawer, shelf | fridge, table, desk, box
  shirt | wash | wardrobe 5, basket 3, bed 2, chair, drawer | shelf, cabinet, sofa, box, tub
  soap | wash | sink 4, tub 3, shelf 2, cabinet | counter, basket, drawer, box
  spoon | wash | drawer 5, table 2, sink, desk | counter, cabinet, shelf, box
  tomato | wash heat cool | fridge 4, counter 2, sink 2, table, drawer, chair | cabinet, shelf, desk, box
  towel |  | tub 3, basket 3, cabinet 2, shelf, bed | drawer, counter, chair, wardrobe, sink
  vase | wash inspect | table 3, shelf 3, cabinet 2, desk | sink, box, drawer, sofa, bed
  watch | inspect | drawer 4, bed 2, shelf, sofa, box | desk, table, cabinet, chair, counter
`
  .trim()
  .split("\n")
  .map(readObjectKind);

function room(name: string, places: string): RoomType {
  return {
    name,
    places: places.split(", ").flatMap((item) => {
      const [kind = "", times = "1"] = item.split(" ");
      return Array.from({ length: Number(times) }, () => kindIndex(kind));
    }),
  };
}

/** Rooms of train and valid_seen. */
export const usualRooms: readonly RoomType[] = [
  room("bathroom", "sink, tub, cabinet 2, shelf 2, basket, drawer, counter"),
  room("bedroom", "bed, wardrobe, drawer 2, desk, lamp, chair, shelf 2, box"),
  room("kitchen", "fridge, microwave, stove, sink, counter 2, cabinet 3, drawer 2, table, shelf"),
  room("laundry", "sink, basket 2, shelf 2, cabinet 2, counter, box"),
  room("lounge", "sofa, table, chair, shelf 2, cabinet, lamp, box, drawer"),
  room("office", "desk, lamp, chair, drawer 3, shelf 2, box, cabinet"),
];

/** Rooms of valid_unseen. */
export const unusualRooms: readonly RoomType[] = [
  room("bedroom office", "bed, desk, lamp, drawer 2, shelf, wardrobe, box, chair"),
  room("laundry bathroom", "sink, tub, basket 2, shelf 2, cabinet 2, counter"),
  room("lounge kitchen", "fridge, stove, sink, table, sofa, cabinet 2, shelf 2, lamp, chair, box"),
  room(
    "office kitchen",
    "fridge, microwave, sink, counter, desk, cabinet 2, drawer 2, shelf, lamp",
  ),
];

/** The maximum number of places of one kind in a house. */
export const mostPlacesOfAKind = 6;

/** The maximum number of objects of one kind in a house. */
export const mostObjectsOfAKind = 2;

// The numbered places and objects of a house ("fridge 1", "apple 2"), with the commands that name
// only them.

/** A place of some house, with its texts, created once for all houses. */
export interface PlaceName {
  /** Orders places by name. */
  readonly id: number;
  readonly name: string;
  readonly kind: PlaceKind;
  /** Index of the kind in `placeKinds`. */
  readonly kindIndex: number;
  /** "in fridge 1", "on table 2"; the bare name for a place that takes nothing. */
  readonly inside: string;
  /** `inside` at the start of a sentence. */
  readonly insideFirst: string;
  readonly goTo: string;
  readonly open: string;
  readonly close: string;
  readonly switchOn: string;
  readonly switchOff: string;
}

/** An object of some house. */
export interface ObjectName {
  /** Orders objects by name. */
  readonly id: number;
  readonly name: string;
  readonly kind: ObjectKind;
  /** Index of the kind in `objectKinds`. */
  readonly kindIndex: number;
}

// Kinds are sorted and numbers have one digit, so ids are in the order of the names as text.
const placeNames: readonly PlaceName[] = placeKinds.flatMap((kind, kindIndex) =>
  Array.from({ length: mostPlacesOfAKind }, (_, i) => {
    const name = `${kind.name} ${i + 1}`;
    const inside = kind.preposition === undefined ? name : `${kind.preposition} ${name}`;
    return {
      id: kindIndex * mostPlacesOfAKind + i,
      name,
      kind,
      kindIndex,
      inside,
      insideFirst: inside.replace(/^[io]/, (letter) => letter.toUpperCase()),
      goTo: `go to ${name}`,
      open: `open ${name}`,
      close: `close ${name}`,
      switchOn: `switch on ${name}`,
      switchOff: `switch off ${name}`,
    };
  }),
);

const objectNames: readonly ObjectName[] = objectKinds.flatMap((kind, kindIndex) =>
  Array.from({ length: mostObjectsOfAKind }, (_, i) => ({
    id: kindIndex * mostObjectsOfAKind + i,
    name: `${kind.name} ${i + 1}`,
    kind,
    kindIndex,
  })),
);

/** The place with this number (from 1) of its kind. */
export function placeName(kindIndex: number, number: number): PlaceName {
  return placeNames[kindIndex * mostPlacesOfAKind + number - 1] as PlaceName;
}

/** The object with this number (from 1) of its kind. */
export function objectName(kindIndex: number, number: number): ObjectName {
  return objectNames[kindIndex * mostObjectsOfAKind + number - 1] as ObjectName;
}

const placeKindByWord = new Map(placeKinds.map((kind, index) => [kind.name, index]));
const objectKindByWord = new Map(objectKinds.map((kind, index) => [kind.name, index]));

/** The place that a kind word and a number word name, whether or not this house has it. */
export function readPlace(word: string | undefined, number: string | undefined) {
  return read(placeKindByWord, mostPlacesOfAKind, placeNames, word, number);
}

/** The object that a kind word and a number word name, whether or not this house has it. */
export function readObject(word: string | undefined, number: string | undefined) {
  return read(objectKindByWord, mostObjectsOfAKind, objectNames, word, number);
}

function read<Name>(
  kinds: ReadonlyMap<string, number>,
  most: number,
  names: readonly Name[],
  word: string | undefined,
  number: string | undefined,
): Name | undefined {
  if (word === undefined || number?.length !== 1) return undefined;
  const kind = kinds.get(word);
  const digit = number.charCodeAt(0) - 48;
  if (kind === undefined || digit < 1 || digit > most) return undefined;
  return names[kind * most + digit - 1];
}
