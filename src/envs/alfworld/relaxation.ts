/**
 * How far a state is from the goal if nothing ever became false that helps: the delete relaxation,
 * with the additive heuristic's supporters and the relaxed plan they give (Hoffmann and Nebel's FF).
 * Grounded once per game, for the expert alone; literals are small numbers.
 */
import type { Facts } from "./facts.js";
import { includes } from "./facts.js";
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

/** What the relaxation says of a state. */
export interface Estimate {
  /** Actions in the relaxed plan; undefined where the goal is out of reach for good. */
  readonly distance: number | undefined;
  /** The actions of the relaxed plan that apply at once. */
  readonly helpful: ReadonlySet<Action>;
}

/** A step of the relaxation: an action's effect, or the choice of one side of an "or". */
interface Operator {
  readonly action: Action | undefined;
  readonly needs: readonly number[];
  readonly gives: readonly number[];
}

export interface Relaxation {
  estimate(state: State): Estimate;
}

/** A ground condition: decided, or literals that all must hold. */
type Ground = boolean | readonly number[];

/** Grounds a world for estimates from any state that can be reached in it. */
export function relax(world: World): Relaxation {
  const reachable = reachableFacts(world);
  const view: View = { setting: world, facts: reachable.facts, optimistic: true };
  const literals = createLiterals(world);
  const operators: Operator[] = [];
  const ground = (test: Test, bindings: Int32Array): Ground => {
    switch (test.op) {
      case "atom":
        return groundAtom(test, bindings);
      case "equal":
        return holds(view, test, bindings);
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
    const possible = includes(reachable.facts[atom.predicate]!, key);
    if (!world.fluent[atom.predicate] || !possible) {
      return possible === atom.positive;
    }
    return [literals.id(atom.predicate, key, atom.positive)];
  };
  const groundStep = (step: Program[number], bindings: Int32Array): Ground => {
    if (step.op === "match") {
      const terms = step.positions.map(({ term }) => ~objectOf(term, bindings));
      return groundAtom({ op: "atom", positive: true, predicate: step.predicate, terms }, bindings);
    }
    return step.op === "test" ? ground(step.test, bindings) : true;
  };
  /** One literal for several ways: each way is an operator that costs nothing. */
  const any = (ways: readonly Ground[]): Ground => {
    if (ways.some((way) => way === true || (typeof way !== "boolean" && way.length === 0))) {
      return true;
    }
    const open = ways.filter((way) => typeof way !== "boolean");
    if (open.length < 2) {
      return open[0] ?? false;
    }
    const either = literals.fresh();
    operators.push(...open.map((needs) => ({ action: undefined, needs, gives: [either] })));
    return [either];
  };

  const goal = ground(world.goal, new Int32Array(world.goalSlots));
  for (const action of reachable.actions) {
    const { schema } = action;
    const bindings = new Int32Array(schema.slots);
    bindings.set(action.arguments);
    const precondition = ground(schema.precondition, bindings);
    for (const { atom, variables, condition } of schema.effects) {
      chooseAll(variables, 0, bindings, () => {
        const needs = all([precondition, condition ? ground(condition, bindings) : true]);
        const key = factKey(world.objects, atom.terms, bindings);
        if (typeof needs !== "boolean" || needs) {
          const gives = [literals.id(atom.predicate, key, atom.positive)];
          operators.push({ action, needs: needs === true ? [] : (needs as number[]), gives });
        }
        return false;
      });
    }
  }
  return estimator(world, literals, mergeEffects(operators), goal);
}

function all(parts: readonly Ground[]): Ground {
  if (parts.includes(false)) {
    return false;
  }
  const literals: number[] = [];
  for (const part of parts) {
    if (typeof part !== "boolean") {
      for (const literal of part) {
        if (!literals.includes(literal)) {
          literals.push(literal);
        }
      }
    }
  }
  return literals;
}

/** Effects of one action under the same conditions become one operator. */
function mergeEffects(operators: readonly Operator[]): readonly Operator[] {
  const merged = new Map<
    string,
    { action: Action | undefined; needs: readonly number[]; gives: number[] }
  >();
  const numbers = new Map<Action, number>();
  operators.forEach((operator, index) => {
    const { action, needs, gives } = operator;
    if (action !== undefined && !numbers.has(action)) {
      numbers.set(action, index);
    }
    const key = action === undefined ? `or ${index}` : `${numbers.get(action)} ${needs.join()}`;
    const known = merged.get(key);
    if (known === undefined) {
      merged.set(key, { action, needs, gives: [...gives] });
    } else {
      known.gives.push(...gives);
    }
  });
  return [...merged.values()];
}

/** Everything that can become true, and every action that can become applicable. */
function reachableFacts(world: World): { readonly facts: Facts; readonly actions: Set<Action> } {
  let facts: Facts = world.initial;
  const actions = new Set<Action>();
  let changed = new Set(world.domain.predicates.keys());
  for (let first = true; first || changed.size > 0; first = false) {
    const view: View = { setting: world, facts, optimistic: true };
    const rows = facts.map((row) => new Set(row));
    for (const schema of world.schemas) {
      if (!first && ![...schema.reads].some((predicate) => changed.has(predicate))) {
        continue;
      }
      for (const action of findActions(view, schema)) {
        if (actions.has(action)) {
          continue;
        }
        actions.add(action);
        const bindings = new Int32Array(schema.slots);
        bindings.set(action.arguments);
        for (const { atom, variables } of schema.effects) {
          if (atom.positive) {
            chooseAll(variables, 0, bindings, () => {
              rows[atom.predicate]!.add(factKey(world.objects, atom.terms, bindings));
              return false;
            });
          }
        }
      }
    }
    changed = new Set();
    facts = facts.map((row, predicate) => {
      const grown = rows[predicate]!;
      if (grown.size === row.length) {
        return row;
      }
      changed.add(predicate);
      return [...grown].sort((left, right) => left - right);
    });
  }
  return { facts, actions };
}

/** Numbers for facts and for their absence. */
interface LiteralTable {
  /** By predicate, from a fact to its number; the second of a fact's absence. */
  readonly positive: readonly Map<number, number>[];
  readonly negative: readonly Map<number, number>[];
  count(): number;
  /** A number that stands for no fact. */
  fresh(): number;
  id(predicate: number, key: number, positive: boolean): number;
}

function createLiterals(world: World): LiteralTable {
  const positive = world.domain.predicates.map(() => new Map<number, number>());
  const negative = world.domain.predicates.map(() => new Map<number, number>());
  let count = 0;
  return {
    positive,
    negative,
    count: () => count,
    fresh: () => count++,
    id(predicate, key, isPositive) {
      const table = (isPositive ? positive : negative)[predicate]!;
      let id = table.get(key);
      if (id === undefined) {
        id = count++;
        table.set(key, id);
      }
      return id;
    },
  };
}

function estimator(
  world: World,
  literals: LiteralTable,
  operators: readonly Operator[],
  goal: Ground,
): Relaxation {
  const users: number[][] = Array.from({ length: literals.count() }, () => []);
  operators.forEach(({ needs }, index) => {
    for (const literal of needs) {
      users[literal]!.push(index);
    }
  });
  const cost = new Int32Array(literals.count());
  const supporter = new Int32Array(literals.count());
  const missing = new Int32Array(operators.length);
  const sum = new Int32Array(operators.length);

  const estimate = (state: State): Estimate => {
    if (typeof goal === "boolean") {
      return { distance: goal ? 0 : undefined, helpful: new Set() };
    }
    cost.fill(-1);
    supporter.fill(-1);
    sum.fill(0);
    const buckets: number[][] = [[]];
    const settle = new Uint8Array(literals.count());
    const offer = (literal: number, price: number, by: number) => {
      if (cost[literal] === -1 || price < cost[literal]!) {
        cost[literal] = price;
        supporter[literal] = by;
        buckets[price] ??= [];
        buckets[price]!.push(literal);
      }
    };
    const fire = (index: number) => {
      const { action, gives } = operators[index]!;
      const price = sum[index]! + (action === undefined ? 0 : 1);
      for (const literal of gives) {
        offer(literal, price, index);
      }
    };
    operators.forEach(({ needs }, index) => {
      missing[index] = needs.length;
    });
    offerState(world, literals, state, (literal) => offer(literal, 0, -1));
    operators.forEach(({ needs }, index) => {
      if (needs.length === 0) {
        fire(index);
      }
    });
    const open = new Set(goal);
    for (let price = 0; price < buckets.length && open.size > 0; price++) {
      const bucket = buckets[price] ?? [];
      for (let at = 0; at < bucket.length; at++) {
        const literal = bucket[at]!;
        if (settle[literal] === 1) {
          continue;
        }
        settle[literal] = 1;
        open.delete(literal);
        for (const index of users[literal]!) {
          sum[index]! += price;
          if (--missing[index]! === 0) {
            fire(index);
          }
        }
      }
    }
    return open.size > 0 ? { distance: undefined, helpful: new Set() } : relaxedPlan(goal);
  };

  const relaxedPlan = (goals: readonly number[]): Estimate => {
    const chosen = new Set<Action>();
    const helpful = new Set<Action>();
    const stack = [...goals];
    const seen = new Set<number>();
    for (let literal = stack.pop(); literal !== undefined; literal = stack.pop()) {
      const by = supporter[literal]!;
      if (seen.has(literal) || by === -1) {
        continue;
      }
      seen.add(literal);
      const { action, needs } = operators[by]!;
      if (action !== undefined) {
        chosen.add(action);
        if (needs.every((need) => cost[need] === 0)) {
          helpful.add(action);
        }
      }
      stack.push(...needs);
    }
    return { distance: chosen.size, helpful };
  };

  return { estimate };
}

/** Names every literal that holds in a state. */
function offerState(
  world: World,
  literals: LiteralTable,
  state: State,
  offer: (literal: number) => void,
): void {
  for (const predicate of world.domain.predicates.keys()) {
    const row = state.facts[predicate]!;
    const known = literals.positive[predicate]!;
    if (known.size > 0) {
      for (const key of row) {
        const literal = known.get(key);
        if (literal !== undefined) {
          offer(literal);
        }
      }
    }
    for (const [key, literal] of literals.negative[predicate]!) {
      if (!includes(row, key)) {
        offer(literal);
      }
    }
  }
}
