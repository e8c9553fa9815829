/** A problem compiled to run: numbered objects, initial facts, action schemas, the goal. */

import type { AtomFormula, Formula, Term, Variable } from "./formula.js";
import { fault, type Source } from "./games.js";
import { type Facts, numberObjects, type Objects, type TypeMembers } from "./objects.js";
import type { ActionSchema, Domain, Problem } from "./pddl.js";
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

// Compiles conditions for one game: names become objects, conjunctions become programs. Their order
// is fixed here, so that what binds and what checks is known before anything runs.

const NEVER: Test = { op: "or", parts: [] };
const ALWAYS: Test = { op: "and", parts: [] };

/** Compiles a condition; `constants` are the names that its constant terms refer to. */
function prepareTest(setting: Setting, formula: Formula, constants: readonly string[]): Test {
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
function prepareProgram(
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

/** A literal an action makes true or false. */
interface WorldEffect {
  readonly atom: AtomTest;
  readonly variables: readonly Choice[];
  readonly condition: Test | undefined;
  /** The changing predicates that determine the condition. */
  readonly conditionReads: ReadonlySet<number>;
}

/** An action schema of this game. */
export interface Schema {
  readonly index: number;
  readonly name: string;
  /** The names of the parameters, without `?`; their slots are their positions. */
  readonly parameters: readonly string[];
  readonly positions: readonly number[];
  readonly choices: readonly Choice[];
  readonly slots: number;
  /** Each finds arguments for which the action applies; it applies if any of them does. */
  readonly programs: readonly Program[];
  /** Whether the programs can find the same arguments twice. */
  readonly repeats: boolean;
  /** The changing predicates that determine whether it applies. */
  readonly reads: ReadonlySet<number>;
  readonly effects: readonly WorldEffect[];
  /** What must hold for it to apply, as far as it is a plain list of literals. */
  readonly required: readonly AtomTest[];
  /** Everything that must hold for it to apply, as one test. */
  precondition(): Test;
  /** Whether it could change nothing with some arguments; such actions are never offered. */
  readonly mayBeIdle: boolean;
  /** The ground actions found so far, by the number of their arguments. */
  readonly actions: Map<number, Action | undefined>;
}

/** An action with its arguments. */
export interface Action {
  readonly schema: Schema;
  readonly arguments: Int32Array;
}

export interface World extends Setting {
  readonly domain: Domain;
  readonly objects: Objects;
  readonly schemas: readonly Schema[];
  readonly goal: Test;
  readonly goalSlots: number;
  /** The changing predicates that determine whether the goal holds. */
  readonly goalReads: ReadonlySet<number>;
  readonly initial: Facts;
}

/** Integers up to this are exact; facts and arguments are each packed into one number. */
const LARGEST = Number.MAX_SAFE_INTEGER;

/** Compiles a problem. */
export function buildWorld(domain: Domain, problem: Problem, source: Source): World {
  const objects = numberObjects(domain, problem);
  const widest = Math.max(0, ...domain.predicates.map(({ arity }) => arity));
  if (objects.count ** widest > LARGEST)
    throw fault(source, 1, `${objects.count} objects are too many for ${widest} arguments`);
  const fluent = domain.predicates.map(() => false);
  for (const { effects } of domain.actions) {
    for (const { atom } of effects) fluent[atom.predicate] = true;
  }
  const initial = initialFacts(domain, problem, objects, source);
  const setting: Setting = { objects, fluent, initial };
  const schemas = domain.actions.map((action, index) =>
    buildSchema(setting, domain, action, index, source),
  );
  const goal = prepareTest(setting, problem.goal, problem.constants);
  const goalReads = fluentsOf(setting, problem.goal);
  return { ...setting, domain, schemas, goal, goalReads, goalSlots: problem.goalSlots };
}

function initialFacts(domain: Domain, problem: Problem, objects: Objects, source: Source): Facts {
  const rows: number[][] = domain.predicates.map(() => []);
  for (const { predicate, names, line } of problem.facts) {
    let key = 0;
    for (const name of names) {
      const object = objects.index.get(name);
      if (object === undefined)
        throw fault(source, line, `\`${name}\` is not among the problem's objects`);
      key = key * objects.count + object;
    }
    rows[predicate]!.push(key);
  }
  return rows.map((row) => {
    row.sort((a, b) => a - b);
    return row.filter((key, at) => key !== row[at - 1]);
  });
}

function buildSchema(
  setting: Setting,
  domain: Domain,
  action: ActionSchema,
  index: number,
  source: Source,
): Schema {
  const { constants } = domain;
  const choices = action.parameters.map(({ slot, type }) => {
    return { slot, members: setting.objects.ofType(type) };
  });
  if (choices.reduce((product, { members }) => product * members.objects.length, 1) > LARGEST)
    throw fault(source, 1, `action \`${action.name}\` has too many parameters for the objects`);
  const { precondition } = action;
  const cases = precondition.op === "or" ? precondition.parts : [precondition];
  const programs = cases
    .map((part) => prepareProgram(setting, part, constants, action.parameters))
    .filter((program) => program !== undefined);
  const effects = action.effects.map(({ atom, variables, condition }): WorldEffect => {
    return {
      atom: prepareEffect(setting, domain, atom, action.name, source),
      variables: variables.map(({ slot, type }) => {
        return { slot, members: setting.objects.ofType(type) };
      }),
      condition: condition && prepareTest(setting, condition, constants),
      conditionReads: condition ? fluentsOf(setting, condition) : new Set(),
    };
  });
  const required = conjuncts(precondition)
    .map((part) => prepareTest(setting, part, constants))
    .filter((test) => test.op === "atom");
  return {
    index,
    name: action.name,
    parameters: action.parameters.map(({ name }) => name),
    positions: [...action.parameters.keys()],
    choices,
    slots: action.slots,
    programs,
    repeats: cases.length > 1 || hasInnerVariables(precondition),
    reads: fluentsOf(setting, precondition),
    effects,
    required,
    precondition: () => prepareTest(setting, precondition, constants),
    mayBeIdle: effects.every((effect) => {
      if (effect.condition !== undefined) return false;
      const { predicate, positive } = effect.atom;
      return !positive || required.some((atom) => atom.predicate === predicate && atom.positive);
    }),
    actions: new Map(),
  };
}

function prepareEffect(
  setting: Setting,
  domain: Domain,
  atom: AtomFormula,
  action: string,
  source: Source,
): AtomTest {
  const test = prepareTest(setting, atom, domain.constants);
  if (test.op !== "atom") {
    const missing = atom.terms
      .filter((term) => term < 0)
      .map((term) => domain.constants[~term]!)
      .filter((name) => !setting.objects.index.has(name));
    const message = `an effect of \`${action}\` names ${missing.join(", ")}, which is no object`;
    throw fault(source, 1, message);
  }
  return test;
}

function conjuncts(formula: Formula): readonly Formula[] {
  return formula.op === "and" ? formula.parts.flatMap(conjuncts) : [formula];
}

function hasInnerVariables(formula: Formula): boolean {
  return conjuncts(formula).some((part) => part.op === "exists");
}

/** The predicates in a condition that some action changes. */
function fluentsOf(setting: Setting, formula: Formula, into = new Set<number>()): Set<number> {
  if (formula.op === "atom") {
    if (setting.fluent[formula.predicate]) into.add(formula.predicate);
  } else if ("body" in formula) {
    fluentsOf(setting, formula.body, into);
  } else if ("parts" in formula) {
    for (const part of formula.parts) fluentsOf(setting, part, into);
  }
  return into;
}
