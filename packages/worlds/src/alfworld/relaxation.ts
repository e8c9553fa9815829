/**
 * The delete relaxation: how far a state is from the goal if facts, once true, stayed true. The
 * cost of each literal is found by adding up costs; the actions on the cheapest paths to the goal
 * are the relaxed plan, and its length is the estimate (Hoffmann and Nebel's FF).
 */

import { type Facts, includes } from "./objects.js";
import {
  type AtomTest,
  chooseAll,
  factKey,
  holds,
  objectOf,
  type Program,
  search,
  type Test,
  type View,
} from "./solve.js";
import { findActions, type State } from "./state.js";
import type { Action, World } from "./world.js";

/** The relaxation's estimate for a state. */
export interface Estimate {
  /** Number of actions in the relaxed plan; undefined if the goal can no longer be reached. */
  readonly distance: number | undefined;
  /** The actions of the relaxed plan that apply now. */
  readonly helpful: ReadonlySet<Action>;
}

/** Costs are capped here; literals this expensive are not distinguished. */
const DEAREST = 10_000;

const HOPELESS: Estimate = { distance: undefined, helpful: new Set() };

/** A function that estimates states of a world. */
export function createEstimator(world: World): (state: State) => Estimate {
  const grounding = groundWorld(world);
  const { operators, goal } = grounding;
  const users: number[][] = Array.from({ length: grounding.literals }, () => []);
  for (const [index, { needs }] of operators.entries()) {
    for (const literal of needs) users[literal]!.push(index);
  }
  return (state) => {
    if (goal === undefined) return HOPELESS;
    const costs = cheapestWays(grounding, users, goal, state);
    return costs === undefined ? HOPELESS : relaxedPlan(grounding, goal, costs);
  };
}

/**
 * The cost of every literal and the operator that produces it at that cost; -1 if there is none.
 */
interface Costs {
  readonly cost: Int32Array;
  readonly by: Int32Array;
}

/** Finds the cheapest paths to literals, nearest first, until all goals have one. */
function cheapestWays(
  grounding: Grounding,
  users: readonly (readonly number[])[],
  goal: readonly number[],
  state: State,
): Costs | undefined {
  const { literals, operators } = grounding;
  const cost = new Int32Array(literals).fill(-1);
  const by = new Int32Array(literals).fill(-1);
  const done = new Uint8Array(literals);
  const sum = new Int32Array(operators.length);
  const missing = Int32Array.from(operators, ({ needs }) => needs.length);
  const buckets: number[][] = [];
  const offer = (literal: number, price: number, giver: number): void => {
    if (cost[literal] === -1 || price < cost[literal]!) {
      cost[literal] = price;
      by[literal] = giver;
      buckets[price] ??= [];
      buckets[price].push(literal);
    }
  };
  const fire = (index: number): void => {
    const { action, gives } = operators[index]!;
    const price = Math.min(DEAREST, sum[index]! + (action === undefined ? 0 : 1));
    for (const literal of gives) offer(literal, price, index);
  };
  for (const literal of grounding.literalsOf(state)) offer(literal, 0, -1);
  for (const [index, { needs }] of operators.entries()) {
    if (needs.length === 0) fire(index);
  }
  const open = new Set(goal);
  for (let price = 0; price < buckets.length && open.size > 0; price++) {
    // A bucket may grow while it is processed: operators without cost add to it.
    for (const literal of buckets[price] ?? []) {
      if (done[literal] === 0) {
        done[literal] = 1;
        open.delete(literal);
        for (const index of users[literal]!) {
          sum[index]! += price;
          missing[index]!--;
          if (missing[index] === 0) fire(index);
        }
      }
    }
  }
  return open.size === 0 ? { cost, by } : undefined;
}

/** Collects the actions on the cheapest paths to the goal. */
function relaxedPlan(grounding: Grounding, goal: readonly number[], costs: Costs): Estimate {
  const chosen = new Set<Action>();
  const helpful = new Set<Action>();
  const seen = new Set<number>();
  const stack = [...goal];
  for (let literal = stack.pop(); literal !== undefined; literal = stack.pop()) {
    const operator = grounding.operators[costs.by[literal]!];
    if (operator === undefined || seen.has(literal)) {
      continue; // it already holds, or its path is known
    }
    seen.add(literal);
    const { action, needs } = operator;
    if (action !== undefined) {
      chosen.add(action);
      if (needs.every((need) => costs.cost[need] === 0)) helpful.add(action);
    }
    stack.push(...needs);
  }
  return { distance: chosen.size, helpful };
}

// A game without variables, as the expert's estimates need it: every action that can ever apply, as
// the numbers of the literals it requires and produces. Built once per game, and only on demand.

/** An action under one condition or, without an action, one branch of an "or". */
interface Operator {
  readonly action: Action | undefined;
  readonly needs: readonly number[];
  readonly gives: readonly number[];
}

interface Grounding {
  /** The number of literals. */
  readonly literals: number;
  readonly operators: readonly Operator[];
  /** Literals that all hold exactly when the goal does; undefined if it can never hold. */
  readonly goal: readonly number[] | undefined;
  /** The literals that hold in a state. */
  literalsOf(state: State): readonly number[];
}

/** A condition as literals that all must hold; undefined if it can never hold. */
type Ground = readonly number[] | undefined;

/** Grounds a world, for all states that can be reached in it. */
function groundWorld(world: World): Grounding {
  const reachable = explore(world);
  const literals = createLiterals(world);
  const operators: Operator[] = [];
  const ground = conditionGrounder(world, reachable.facts, literals, operators);
  const goal = ground(world.goal, new Int32Array(world.goalSlots));
  const preconditions = world.schemas.map((schema) => schema.precondition());
  for (const action of reachable.actions) {
    const precondition = preconditions[action.schema.index]!;
    operators.push(...operatorsOf(world, action, precondition, ground, literals));
  }
  return { literals: literals.count(), operators, goal, literalsOf: literals.ofState };
}

/** The operators of an action: one for each condition that its effects have. */
function operatorsOf(
  world: World,
  action: Action,
  precondition: Test,
  ground: (test: Test, bindings: Int32Array) => Ground,
  literals: Literals,
): Iterable<Operator> {
  const { schema } = action;
  const bindings = new Int32Array(schema.slots);
  bindings.set(action.arguments);
  const always = ground(precondition, bindings);
  const byNeeds = new Map<string, Operator & { readonly gives: number[] }>();
  for (const { atom, variables, condition } of schema.effects)
    chooseAll(variables, 0, bindings, () => {
      const needs = all([always, condition ? ground(condition, bindings) : []]);
      if (needs !== undefined) {
        const operator = byNeeds.get(needs.join()) ?? { action, needs, gives: [] };
        const key = factKey(world.objects, atom.terms, bindings);
        operator.gives.push(literals.id(atom.predicate, key, atom.positive));
        byNeeds.set(needs.join(), operator);
      }
      return false;
    });
  return byNeeds.values();
}

/** Grounds conditions; each branch of an "or" becomes an operator without cost. */
function conditionGrounder(
  world: World,
  reachable: Facts,
  literals: Literals,
  operators: Operator[],
): (test: Test, bindings: Int32Array) => Ground {
  const view: View = { setting: world, facts: reachable, optimistic: true };
  const any = (ways: readonly Ground[]): Ground => {
    const possible = ways.filter((way) => way !== undefined);
    if (possible.length < 2 || possible.some((way) => way.length === 0))
      return possible.find((way) => way.length === 0) ?? possible[0];
    const either = literals.fresh();
    operators.push(...possible.map((needs) => ({ action: undefined, needs, gives: [either] })));
    return [either];
  };
  const ground = (test: Test, bindings: Int32Array): Ground => {
    switch (test.op) {
      case "atom":
        return groundAtom(test, bindings);
      case "equal":
        return holds(view, test, bindings) ? [] : undefined;
      case "and":
        return all(test.parts.map((part) => ground(part, bindings)));
      case "or":
        return any(test.parts.map((part) => ground(part, bindings)));
      case "exists": {
        const found: Ground[] = [];
        search(view, test.program, 0, bindings, () => {
          found.push(all(test.program.map((step) => groundStep(step, bindings))));
          return false;
        });
        return any(found);
      }
      case "forall": {
        const found: Ground[] = [];
        chooseAll(test.variables, 0, bindings, () => {
          found.push(ground(test.body, bindings));
          return false;
        });
        return all(found);
      }
    }
  };
  const groundAtom = (atom: AtomTest, bindings: Int32Array): Ground => {
    const key = factKey(world.objects, atom.terms, bindings);
    const possible = includes(reachable[atom.predicate]!, key);
    if (!world.fluent[atom.predicate] || !possible)
      return possible === atom.positive ? [] : undefined;
    return [literals.id(atom.predicate, key, atom.positive)];
  };
  const groundStep = (step: Program[number], bindings: Int32Array): Ground => {
    if (step.op === "match") {
      const terms = step.positions.map(({ term }) => ~objectOf(term, bindings));
      return groundAtom({ op: "atom", positive: true, predicate: step.predicate, terms }, bindings);
    }
    return step.op === "test" ? ground(step.test, bindings) : [];
  };
  return ground;
}

function all(parts: readonly Ground[]): Ground {
  const literals: number[] = [];
  for (const part of parts) {
    if (part === undefined) return undefined;
    for (const literal of part) {
      if (!literals.includes(literal)) literals.push(literal);
    }
  }
  return literals;
}

/** Everything that can become true, and every action that can become applicable. */
function explore(world: World): { readonly facts: Facts; readonly actions: Set<Action> } {
  let facts: Facts = world.initial;
  const actions = new Set<Action>();
  let changed: ReadonlySet<number> | undefined;
  while (changed === undefined || changed.size > 0) {
    const view: View = { setting: world, facts, optimistic: true };
    const rows = facts.map((row) => new Set(row));
    for (const schema of world.schemas) {
      if (changed === undefined || [...schema.reads].some((read) => changed!.has(read))) {
        for (const action of findActions(view, schema)) {
          if (!actions.has(action)) {
            actions.add(action);
            addEffects(world, action, rows);
          }
        }
      }
    }
    const grown = new Set([...rows.keys()].filter((at) => rows[at]!.size > facts[at]!.length));
    facts = facts.map((row, at) =>
      grown.has(at) ? [...rows[at]!].sort((left, right) => left - right) : row,
    );
    changed = grown;
  }
  return { facts, actions };
}

/** Adds all facts that an action can make true, whatever their conditions. */
function addEffects(world: World, action: Action, rows: readonly Set<number>[]): void {
  const bindings = new Int32Array(action.schema.slots);
  bindings.set(action.arguments);
  for (const { atom, variables } of action.schema.effects) {
    if (atom.positive)
      chooseAll(variables, 0, bindings, () => {
        rows[atom.predicate]!.add(factKey(world.objects, atom.terms, bindings));
        return false;
      });
  }
}

/** Numbers for facts and for their absence. */
interface Literals {
  count(): number;
  /** A number that stands for no fact. */
  fresh(): number;
  id(predicate: number, key: number, positive: boolean): number;
  ofState(state: State): readonly number[];
}

function createLiterals(world: World): Literals {
  const present = world.domain.predicates.map(() => new Map<number, number>());
  const absent = world.domain.predicates.map(() => new Map<number, number>());
  let count = 0;
  return {
    count: () => count,
    fresh: () => count++,
    id(predicate, key, positive) {
      const table = (positive ? present : absent)[predicate]!;
      let id = table.get(key);
      if (id === undefined) {
        id = count++;
        table.set(key, id);
      }
      return id;
    },
    ofState(state) {
      const held: number[] = [];
      for (const [predicate, row] of state.facts.entries()) {
        if (present[predicate]!.size > 0) {
          const ids = row.map((key) => present[predicate]!.get(key));
          held.push(...ids.filter((id) => id !== undefined));
        }
        for (const [key, id] of absent[predicate]!) {
          if (!includes(row, key)) held.push(id);
        }
      }
      return held;
    },
  };
}
