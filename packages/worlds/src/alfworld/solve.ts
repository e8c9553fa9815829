/**
 * Evaluates conditions over facts. Existential conditions are programs: match a predicate's facts,
 * test what is bound, choose values for what no fact binds. Nothing ever enumerates all groundings.
 */
import {
  type Facts,
  includes,
  lowerBound,
  type Objects,
  type Row,
  type TypeMembers,
} from "./objects.js";

/** A variable's slot (0 and up), or `~i` for the object number i. */
export type BoundTerm = number;

/** A predicate over slots and objects. */
export interface AtomTest {
  readonly op: "atom";
  readonly positive: boolean;
  readonly predicate: number;
  readonly terms: readonly BoundTerm[];
}

export type Test =
  | AtomTest
  | {
      readonly op: "equal";
      readonly positive: boolean;
      readonly left: number;
      readonly right: number;
    }
  | { readonly op: "and" | "or"; readonly parts: readonly Test[] }
  | { readonly op: "exists"; readonly program: Program }
  | { readonly op: "forall"; readonly variables: readonly Choice[]; readonly body: Test };

/** A variable that ranges over all objects of its type. */
export interface Choice {
  readonly slot: number;
  readonly members: TypeMembers;
}

/** Iterates over the facts of a predicate that match what is bound, and binds the rest. */
export interface Match {
  readonly op: "match";
  readonly predicate: number;
  readonly positions: readonly Position[];
  /**
   * The number of leading arguments that are already bound: facts are sorted, so those form a
   * range.
   */
  readonly prefix: number;
}

export interface Position {
  readonly term: BoundTerm;
  readonly weight: number;
  /** The type of the variable that is bound here; absent if the argument is only compared. */
  readonly members: TypeMembers | undefined;
}

export type Program = readonly (
  | Match
  | { readonly op: "test"; readonly test: Test }
  | ({ readonly op: "choose" } & Choice)
)[];

/** What conditions of one game are compiled against. */
export interface Setting {
  readonly objects: Objects;
  /** Whether some action changes the predicate. */
  readonly fluent: readonly boolean[];
  readonly initial: Facts;
}

/** The facts that conditions are evaluated over. */
export interface View {
  readonly setting: Setting;
  readonly facts: Facts;
  /**
   * Whether facts that some action can change count as false wherever that helps: the delete
   * relaxation, used when the expert grounds.
   */
  readonly optimistic: boolean;
}

/** The object a term stands for. */
export function objectOf(term: BoundTerm, bindings: Int32Array): number {
  return term >= 0 ? bindings[term]! : ~term;
}

/** The number of the fact with these arguments. */
export function factKey(
  objects: Objects,
  terms: readonly BoundTerm[],
  bindings: Int32Array,
): number {
  let key = 0;
  for (const term of terms) key = key * objects.count + objectOf(term, bindings);
  return key;
}

/** Whether a condition holds. */
export function holds(view: View, test: Test, bindings: Int32Array): boolean {
  switch (test.op) {
    case "atom": {
      const key = factKey(view.setting.objects, test.terms, bindings);
      if (!test.positive && view.optimistic && view.setting.fluent[test.predicate]) return true;
      return includes(view.facts[test.predicate]!, key) === test.positive;
    }
    case "equal": {
      const equal = objectOf(test.left, bindings) === objectOf(test.right, bindings);
      return equal === test.positive;
    }
    case "and":
      return test.parts.every((part) => holds(view, part, bindings));
    case "or":
      return test.parts.some((part) => holds(view, part, bindings));
    case "exists":
      return search(view, test.program, 0, bindings, () => true);
    case "forall":
      return !chooseAll(test.variables, 0, bindings, () => !holds(view, test.body, bindings));
  }
}

/** Iterates over all values of `variables`; stops and returns true when `found` does. */
export function chooseAll(
  variables: readonly Choice[],
  at: number,
  bindings: Int32Array,
  found: () => boolean,
): boolean {
  const variable = variables[at];
  if (variable === undefined) return found();
  for (const object of variable.members.objects) {
    bindings[variable.slot] = object;
    if (chooseAll(variables, at + 1, bindings, found)) return true;
  }
  return false;
}

/** Runs a program from an instruction on; stops and returns true when `found` does. */
export function search(
  view: View,
  program: Program,
  at: number,
  bindings: Int32Array,
  found: () => boolean,
): boolean {
  const step = program[at];
  if (step === undefined) return found();
  if (step.op === "test")
    return holds(view, step.test, bindings) && search(view, program, at + 1, bindings, found);
  if (step.op === "choose") {
    for (const object of step.members.objects) {
      bindings[step.slot] = object;
      if (search(view, program, at + 1, bindings, found)) return true;
    }
    return false;
  }
  const row = view.facts[step.predicate]!;
  const { from, to } = range(step, row, bindings);
  const { count } = view.setting.objects;
  for (let index = from; index < row.length && row[index]! < to; index++) {
    if (
      agrees(step, row[index]!, count, bindings) &&
      search(view, program, at + 1, bindings, found)
    )
      return true;
  }
  return false;
}

function range(step: Match, row: Row, bindings: Int32Array): { from: number; to: number } {
  if (step.prefix === 0) return { from: 0, to: Number.POSITIVE_INFINITY };
  let low = 0;
  for (let at = 0; at < step.prefix; at++) {
    const { term, weight } = step.positions[at]!;
    low += objectOf(term, bindings) * weight;
  }
  const width = step.positions[step.prefix - 1]!.weight;
  return { from: lowerBound(row, low), to: low + width };
}

function agrees(step: Match, key: number, count: number, bindings: Int32Array): boolean {
  const { positions } = step;
  for (let at = step.prefix; at < positions.length; at++) {
    const { term, weight, members } = positions[at]!;
    const value = Math.floor(key / weight) % count;
    if (members === undefined) {
      if (objectOf(term, bindings) !== value) return false;
    } else if (members.rank[value] === -1) {
      return false;
    } else {
      bindings[term] = value;
    }
  }
  return true;
}
