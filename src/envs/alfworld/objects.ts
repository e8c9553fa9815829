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
