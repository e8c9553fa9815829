/** The objects of one game: numbered in the order of their names, with the types they belong to. */
import type { Domain, Problem } from "./pddl.js";

/** The objects of one type. */
export interface TypeMembers {
  readonly objects: readonly number[];
  /** An object's position among `objects`, or -1 where it is not of the type. */
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
  /** The objects of a type and its subtypes; none for a type nobody declared. */
  ofType(type: string): TypeMembers;
}

/** Numbers the objects of a problem and sorts them by type. */
export function numberObjects(domain: Domain, problem: Problem): Objects {
  const declared = new Map<string, string>();
  for (const { name, type } of problem.objects) {
    declared.set(name, type);
  }
  const names = [...declared.keys()].sort();
  const types = names.map((name) => declared.get(name)!);
  const index = new Map(names.map((name, at) => [name, at]));
  const members = new Map<string, TypeMembers>();
  const isA = (type: string, ancestor: string): boolean => {
    // A type may be its own ancestor by mistake; the set ends that walk.
    const seen = new Set<string>();
    let at: string | undefined = type;
    while (at !== undefined && at !== ancestor && !seen.has(at)) {
      seen.add(at);
      at = domain.types.get(at);
    }
    return at === ancestor || ancestor === "object";
  };
  const ofType = (type: string): TypeMembers => {
    let found = members.get(type);
    if (found === undefined) {
      const matching = new Set([...new Set(types)].filter((each) => isA(each, type)));
      const rank = new Int32Array(names.length).fill(-1);
      const objects: number[] = [];
      for (let object = 0; object < names.length; object++) {
        if (matching.has(types[object]!)) {
          rank[object] = objects.length;
          objects.push(object);
        }
      }
      found = { objects, rank };
      members.set(type, found);
    }
    return found;
  };
  const typeNumbers = Int32Array.from(types, (type) => domain.typeNumbers.get(type)!);
  return { count: names.length, names, types, typeNumbers, index, ofType };
}
