/** The objects of one game: numbered in the order of their names, with the types they belong to. */
import type { Domain, Problem } from "./pddl.js";

/** The objects of one type. */
export interface TypeMembers {
  readonly objects: readonly number[];
  /** An object's position among `objects`, or -1 if it is not of the type. */
  readonly rank: Int32Array;
}

export interface Objects {
  readonly count: number;
  readonly names: readonly string[];
  /** The declared type of each object. */
  readonly types: readonly string[];
  /** The number of its declared type in the domain, by object. */
  readonly typeNumbers: Int32Array;
  readonly index: ReadonlyMap<string, number>;
  /** The objects of a type and its subtypes; none for an undeclared type. */
  ofType(type: string): TypeMembers;
}

/** Numbers the objects of a problem and sorts them by type. */
export function numberObjects(domain: Domain, problem: Problem): Objects {
  const declared = new Map<string, string>();
  for (const { name, type } of problem.objects) declared.set(name, type);
  const names = [...declared.keys()].sort();
  const types = names.map((name) => declared.get(name)!);
  const typeNumbers = Int32Array.from(types, (type) => domain.typeNumbers.get(type)!);
  const index = new Map<string, number>();
  for (let object = 0; object < names.length; object++) index.set(names[object]!, object);
  const members = new Map<string, TypeMembers>();
  const ofType = (type: string): TypeMembers => {
    let found = members.get(type);
    if (found === undefined) {
      found = membersOf(typeNumbers, subtypes(domain, type));
      members.set(type, found);
    }
    return found;
  };
  return { count: names.length, names, types, typeNumbers, index, ofType };
}

function membersOf(typeNumbers: Int32Array, wanted: ReadonlySet<number>): TypeMembers {
  const rank = new Int32Array(typeNumbers.length).fill(-1);
  const objects: number[] = [];
  for (let object = 0; object < typeNumbers.length; object++) {
    if (wanted.has(typeNumbers[object]!)) {
      rank[object] = objects.length;
      objects.push(object);
    }
  }
  return { objects, rank };
}

/** The numbers of a type and of all types below it; every type is below `object`. */
function subtypes(domain: Domain, ancestor: string): ReadonlySet<number> {
  const found = new Set<number>();
  for (const [type, number] of domain.typeNumbers) {
    // A type may by mistake be its own ancestor; the set ends that walk.
    const seen = new Set<string>();
    let at: string | undefined = type;
    while (at !== undefined && at !== ancestor && !seen.has(at)) {
      seen.add(at);
      at = domain.types.get(at);
    }
    if (at === ancestor || ancestor === "object") found.add(number);
  }
  return found;
}

/**
 * Facts as sorted numbers. Objects are numbered in the order of their names, so a fact's arguments,
 * read as digits in base "number of objects", sort as the facts do. Stores are never changed in
 * place: a changed predicate gets a new row and everything else is shared, which makes copies free.
 */

/** The facts of one predicate, ascending. */
export type Row = readonly number[];

/** The facts of every predicate, by its index. */
export type Facts = readonly Row[];

/** The first position in a row whose fact is at least `key`. */
export function lowerBound(row: Row, key: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (row[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a row holds a fact. */
export function includes(row: Row, key: number): boolean {
  return row[lowerBound(row, key)] === key;
}

/** The row with a fact added; the same row if it was already there. */
export function withFact(row: Row, key: number): Row {
  const at = lowerBound(row, key);
  if (row[at] === key) return row;
  const next = row.slice();
  next.splice(at, 0, key);
  return next;
}

/** The row without a fact; the same row if it was not there. */
export function withoutFact(row: Row, key: number): Row {
  const at = lowerBound(row, key);
  if (row[at] !== key) return row;
  const next = row.slice();
  next.splice(at, 1);
  return next;
}
