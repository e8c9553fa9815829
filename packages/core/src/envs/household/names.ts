/**
 * The numbered places and objects of a house ("fridge 1", "apple 2"), with the commands that name
 * only them.
 */
import {
  mostObjectsOfAKind,
  mostPlacesOfAKind,
  type ObjectKind,
  objectKinds,
  type PlaceKind,
  placeKinds,
} from "./kinds.js";

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
