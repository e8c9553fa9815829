/**
 * Compiles conditions for one game: names become objects, conjunctions become programs. Their order
 * is fixed here, so that what binds and what checks is known before anything runs.
 */
import type { Formula, Term, Variable } from "./formula.js";
import type { TypeMembers } from "./objects.js";
import type {
  AtomTest,
  BoundTerm,
  Choice,
  Match,
  Position,
  Program,
  Setting,
  Test,
} from "./solve.js";

const NEVER: Test = { op: "or", parts: [] };
const ALWAYS: Test = { op: "and", parts: [] };

/** Compiles a condition; `constants` are the names that its constant terms refer to. */
export function prepareTest(
  setting: Setting,
  formula: Formula,
  constants: readonly string[],
): Test {
  const resolve = (term: Term): BoundTerm | undefined => {
    if (term >= 0) return term;
    const object = setting.objects.index.get(constants[~term]!);
    return object === undefined ? undefined : ~object;
  };
  switch (formula.op) {
    case "atom": {
      const terms = formula.terms.map(resolve);
      if (terms.every((term) => term !== undefined)) return { ...formula, terms };
      return formula.positive ? NEVER : ALWAYS;
    }
    case "equal": {
      const left = resolve(formula.left);
      const right = resolve(formula.right);
      if (left === undefined || right === undefined) {
        // Names that are no object: equal only to themselves.
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
 * Compiles the program that finds all values of `variables` for which `formula` holds; undefined if
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
    for (const variable of declared) open.set(variable.slot, choice(setting, variable).members);
  };
  const collect = (part: Formula): void => {
    if (part.op === "and") {
      part.parts.forEach(collect);
    } else if (part.op === "exists") {
      declare(part.variables);
      collect(part.body);
    } else if (part.op === "atom" && part.positive) {
      const test = prepareTest(setting, part, constants);
      if (test.op === "atom") atoms.push(test);
      else conditions.push(part);
    } else {
      conditions.push(part);
    }
  };
  declare(variables);
  collect(formula);
  if ([...open.values()].some(({ objects }) => objects.length === 0)) return undefined;
  return order(setting, { open, atoms, conditions, constants });
}

interface Unordered {
  readonly open: Map<number, TypeMembers>;
  readonly atoms: AtomTest[];
  readonly conditions: Formula[];
  readonly constants: readonly string[];
}

/** Orders a conjunction greedily: tests as early as possible, then the fewest facts first. */
function order(setting: Setting, conjunction: Unordered): Program {
  const { open, atoms, constants } = conjunction;
  let { conditions } = conjunction;
  const bound = new Set<number>();
  const steps: Program[number][] = [];
  const isOpen = (term: number) => term >= 0 && open.has(term) && !bound.has(term);
  for (;;) {
    const ready = conditions.filter((each) => [...freeSlots(each)].every((slot) => !isOpen(slot)));
    conditions = conditions.filter((each) => !ready.includes(each));
    for (const each of ready)
      steps.push({ op: "test", test: prepareTest(setting, each, constants) });
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
    if (chosen === undefined) return steps;
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
    if (binds) bound.add(term);
    const weight = setting.objects.count ** (arity - 1 - at);
    return { term, weight, members: binds ? open.get(term) : undefined };
  });
  return { op: "match", predicate: atom.predicate, positions, prefix };
}

/** The slots that a condition reads from outside; constants among them do no harm. */
function freeSlots(formula: Formula, into = new Set<number>()): Set<number> {
  switch (formula.op) {
    case "atom":
      for (const term of formula.terms) into.add(term);
      break;
    case "equal":
      into.add(formula.left);
      into.add(formula.right);
      break;
    case "and":
    case "or":
      for (const part of formula.parts) freeSlots(part, into);
      break;
    default:
      freeSlots(formula.body, into);
      for (const { slot } of formula.variables) into.delete(slot);
  }
  return into;
}
