/**
 * Conditions made ready for one game. A conjunction becomes a program: match a predicate's facts,
 * test what is bound, choose what no fact binds; the order is fixed when it is made, so that what
 * binds and what checks is known before it runs. Nothing ever enumerates all groundings.
 */
import { type Facts, includes, lowerBound, type Row } from "./facts.js";
import type { Formula, Term, Variable } from "./formula.js";
import type { Objects, TypeMembers } from "./objects.js";

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

/** A variable that takes every object of its type. */
export interface Choice {
  readonly slot: number;
  readonly members: TypeMembers;
}

/** Goes through the facts of a predicate that agree with what is bound, and binds the rest. */
interface Match {
  readonly op: "match";
  readonly predicate: number;
  readonly positions: readonly Position[];
  /** How many leading arguments are bound before: facts are sorted, so those are one range. */
  readonly prefix: number;
}

interface Position {
  readonly term: BoundTerm;
  readonly weight: number;
  /** The type of the variable that is bound here; absent where the argument is only compared. */
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
   * Whether what some action can change counts as false wherever that helps: the delete relaxation,
   * in which the expert grounds.
   */
  readonly optimistic: boolean;
}

const NEVER: Test = { op: "or", parts: [] };
const ALWAYS: Test = { op: "and", parts: [] };

/** Makes a condition ready; `constants` are the names its constant terms refer to. */
export function prepareTest(
  setting: Setting,
  formula: Formula,
  constants: readonly string[],
): Test {
  const resolve = (term: Term): BoundTerm | undefined => {
    if (term >= 0) {
      return term;
    }
    const object = setting.objects.index.get(constants[~term]!);
    return object === undefined ? undefined : ~object;
  };
  switch (formula.op) {
    case "atom": {
      const terms = formula.terms.map(resolve);
      if (terms.every((term) => term !== undefined)) {
        return { ...formula, terms };
      }
      return formula.positive ? NEVER : ALWAYS;
    }
    case "equal": {
      const left = resolve(formula.left);
      const right = resolve(formula.right);
      if (left === undefined || right === undefined) {
        // Names of no object: equal only to themselves.
        return (formula.left === formula.right) === formula.positive ? ALWAYS : NEVER;
      }
      return { op: "equal", positive: formula.positive, left, right };
    }
    case "and":
    case "or": {
      const parts = formula.parts.map((part) => prepareTest(setting, part, constants));
      return { op: formula.op, parts };
    }
    case "exists": {
      const program = prepareProgram(setting, formula.body, constants, formula.variables);
      return program === undefined ? NEVER : { op: "exists", program };
    }
    case "forall": {
      const variables = formula.variables.map((variable) => choice(setting, variable));
      return { op: "forall", variables, body: prepareTest(setting, formula.body, constants) };
    }
  }
}

function choice(setting: Setting, variable: Variable): Choice {
  return { slot: variable.slot, members: setting.objects.ofType(variable.type) };
}

/**
 * Makes the program that finds all values of `variables` for which `formula` holds; undefined where
 * some variable's type has no objects, so that there are none.
 */
export function prepareProgram(
  setting: Setting,
  formula: Formula,
  constants: readonly string[],
  variables: readonly Variable[],
): Program | undefined {
  const open = new Map<number, TypeMembers>();
  const atoms: AtomTest[] = [];
  const conditions: Formula[] = [];
  const declare = (declared: readonly Variable[]) => {
    for (const variable of declared) {
      open.set(variable.slot, choice(setting, variable).members);
    }
  };
  const collect = (part: Formula): void => {
    if (part.op === "and") {
      part.parts.forEach(collect);
    } else if (part.op === "exists") {
      declare(part.variables);
      collect(part.body);
    } else if (part.op === "atom" && part.positive) {
      const test = prepareTest(setting, part, constants);
      if (test.op === "atom") {
        atoms.push(test);
      } else {
        conditions.push(part);
      }
    } else {
      conditions.push(part);
    }
  };
  declare(variables);
  collect(formula);
  if ([...open.values()].some(({ objects }) => objects.length === 0)) {
    return undefined;
  }
  return order(setting, { open, atoms, conditions, constants });
}

interface Unordered {
  readonly open: Map<number, TypeMembers>;
  readonly atoms: AtomTest[];
  readonly conditions: Formula[];
  readonly constants: readonly string[];
}

/** Orders a conjunction greedily: tests as early as they can run, then the fewest facts first. */
function order(setting: Setting, conjunction: Unordered): Program {
  const { open, atoms, constants } = conjunction;
  let { conditions } = conjunction;
  const bound = new Set<number>();
  const steps: Program[number][] = [];
  const isOpen = (term: number) => term >= 0 && open.has(term) && !bound.has(term);
  for (;;) {
    const ready = conditions.filter((each) => [...freeSlots(each)].every((slot) => !isOpen(slot)));
    conditions = conditions.filter((each) => !ready.includes(each));
    for (const each of ready) {
      steps.push({ op: "test", test: prepareTest(setting, each, constants) });
    }
    const next = best(atoms, (atom) => {
      const unbound = atom.terms.filter(isOpen).length;
      const facts = setting.initial[atom.predicate]!.length;
      return unbound === 0 ? -1 : facts / 4 ** (atom.terms.length - unbound);
    });
    if (next !== undefined) {
      atoms.splice(atoms.indexOf(next), 1);
      steps.push(match(setting, next, open, bound));
      continue;
    }
    const unchosen = [...open].filter(([slot]) => !bound.has(slot));
    const chosen = best(unchosen, ([, members]) => members.objects.length);
    if (chosen === undefined) {
      return steps;
    }
    bound.add(chosen[0]);
    steps.push({ op: "choose", slot: chosen[0], members: chosen[1] });
  }
}

function best<Item>(items: readonly Item[], cost: (item: Item) => number): Item | undefined {
  let found: Item | undefined;
  let lowest = Number.POSITIVE_INFINITY;
  for (const item of items) {
    const value = cost(item);
    if (value < lowest) {
      found = item;
      lowest = value;
    }
  }
  return found;
}

function match(
  setting: Setting,
  atom: AtomTest,
  open: ReadonlyMap<number, TypeMembers>,
  bound: Set<number>,
): Match {
  const arity = atom.terms.length;
  let prefix = 0;
  let leading = true;
  const positions = atom.terms.map((term, at): Position => {
    const binds = term >= 0 && open.has(term) && !bound.has(term);
    leading &&= !binds;
    prefix += leading ? 1 : 0;
    if (binds) {
      bound.add(term);
    }
    const weight = setting.objects.count ** (arity - 1 - at);
    return { term, weight, members: binds ? open.get(term) : undefined };
  });
  return { op: "match", predicate: atom.predicate, positions, prefix };
}

/** The slots a condition reads from outside itself. */
function freeSlots(formula: Formula, into = new Set<number>()): Set<number> {
  switch (formula.op) {
    case "atom":
      formula.terms.filter((term) => term >= 0).forEach((term) => void into.add(term));
      break;
    case "equal":
      [formula.left, formula.right].filter((t) => t >= 0).forEach((term) => void into.add(term));
      break;
    case "and":
    case "or":
      formula.parts.forEach((part) => void freeSlots(part, into));
      break;
    default:
      freeSlots(formula.body, into);
      for (const { slot } of formula.variables) {
        into.delete(slot);
      }
  }
  return into;
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
  for (const term of terms) {
    key = key * objects.count + objectOf(term, bindings);
  }
  return key;
}

/** Whether a condition holds. */
export function holds(view: View, test: Test, bindings: Int32Array): boolean {
  switch (test.op) {
    case "atom": {
      const key = factKey(view.setting.objects, test.terms, bindings);
      if (!test.positive && view.optimistic && view.setting.fluent[test.predicate]) {
        return true;
      }
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

/** Gives `variables` all their values in turn; stops, and is true, when `found` says so. */
export function chooseAll(
  variables: readonly Choice[],
  at: number,
  bindings: Int32Array,
  found: () => boolean,
): boolean {
  const variable = variables[at];
  if (variable === undefined) {
    return found();
  }
  for (const object of variable.members.objects) {
    bindings[variable.slot] = object;
    if (chooseAll(variables, at + 1, bindings, found)) {
      return true;
    }
  }
  return false;
}

/** Runs a program from a step on; stops, and is true, when `found` says so. */
export function search(
  view: View,
  program: Program,
  at: number,
  bindings: Int32Array,
  found: () => boolean,
): boolean {
  const step = program[at];
  if (step === undefined) {
    return found();
  }
  if (step.op === "test") {
    return holds(view, step.test, bindings) && search(view, program, at + 1, bindings, found);
  }
  if (step.op === "choose") {
    for (const object of step.members.objects) {
      bindings[step.slot] = object;
      if (search(view, program, at + 1, bindings, found)) {
        return true;
      }
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
    ) {
      return true;
    }
  }
  return false;
}

function range(step: Match, row: Row, bindings: Int32Array): { from: number; to: number } {
  if (step.prefix === 0) {
    return { from: 0, to: Number.POSITIVE_INFINITY };
  }
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
      if (objectOf(term, bindings) !== value) {
        return false;
      }
    } else if (members.rank[value] === -1) {
      return false;
    } else {
      bindings[term] = value;
    }
  }
  return true;
}
