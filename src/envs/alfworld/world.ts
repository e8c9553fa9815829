/** A problem compiled to run: numbered objects, initial facts, action schemas, the goal. */
import type { Facts } from "./facts.js";
import type { AtomFormula, Formula } from "./formula.js";
import { numberObjects, type Objects } from "./objects.js";
import type { ActionSchema, Domain, Problem } from "./pddl.js";
import { prepareProgram, prepareTest } from "./prepare.js";
import type { AtomTest, Choice, Program, Setting, Test } from "./solve.js";
import { fault, type Source } from "./source.js";

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
