/**
 * The true state of a game: what holds, which actions apply, what an action changes. States are
 * immutable: an action gives a new one that shares everything it left alone, including the lists of
 * applicable actions. Only the schemas that read a changed predicate are evaluated again.
 */
import { type Facts, includes, withFact, withoutFact } from "./objects.js";
import { type AtomTest, chooseAll, factKey, holds, search, type View } from "./solve.js";
import type { Action, Schema, World } from "./world.js";

export interface State {
  readonly facts: Facts;
  /** The applicable actions of each schema, computed on first use. */
  readonly applicable: (readonly Action[] | undefined)[];
}

/** A fact that an action makes true or false. */
export interface Change {
  readonly predicate: number;
  readonly key: number;
  readonly positive: boolean;
  /** Whether it happens in the true state; conditional effects may not. */
  readonly real: boolean;
}

/** The state in which a game starts. */
export function initialState(world: World): State {
  return { facts: world.initial, applicable: world.schemas.map(() => undefined) };
}

/** Whether the goal holds. */
export function goalReached(world: World, state: State): boolean {
  const view: View = { setting: world, facts: state.facts, optimistic: false };
  return holds(view, world.goal, new Int32Array(world.goalSlots));
}

/** The actions that apply, schema by schema. */
export function applicableActions(world: World, state: State): readonly (readonly Action[])[] {
  return world.schemas.map((schema, index) => {
    const view: View = { setting: world, facts: state.facts, optimistic: false };
    state.applicable[index] ??= findActions(view, schema);
    return state.applicable[index];
  });
}

/** The actions of a schema whose preconditions hold. */
export function findActions(view: View, schema: Schema): readonly Action[] {
  const bindings = new Int32Array(schema.slots);
  const actions: Action[] = [];
  const seen = new Set<number>();
  for (const program of schema.programs)
    search(view, program, 0, bindings, () => {
      const key = argumentsKey(schema, bindings, schema.positions);
      if (schema.repeats) {
        if (seen.has(key)) return false;
        seen.add(key);
      }
      const action = actionOf(view, schema, key, bindings);
      if (action !== undefined) actions.push(action);
      return false;
    });
  return actions;
}

/** Some of the arguments as one number: the digits are positions among the objects of each type. */
export function argumentsKey(
  schema: Schema,
  values: Int32Array,
  positions: readonly number[],
): number {
  let key = 0;
  for (const at of positions) {
    const { members } = schema.choices[at]!;
    key = key * members.objects.length + members.rank[values[at]!]!;
  }
  return key;
}

/**
 * The unique object for an action with these arguments; undefined if the action changes nothing.
 */
function actionOf(
  view: View,
  schema: Schema,
  key: number,
  bindings: Int32Array,
): Action | undefined {
  const known = schema.actions.get(key);
  if (known !== undefined || schema.actions.has(key)) return known;
  const action: Action = {
    schema,
    arguments: bindings.slice(0, schema.parameters.length),
  };
  const kept = schema.mayBeIdle && isIdle(view, schema, bindings) ? undefined : action;
  schema.actions.set(key, kept);
  return kept;
}

/**
 * Whether an action's preconditions already imply its effects, such as going from a place to the
 * same place. The original's planner drops such actions, so they are not commands.
 */
function isIdle(view: View, schema: Schema, bindings: Int32Array): boolean {
  const keyOf = (atom: AtomTest) => factKey(view.setting.objects, atom.terms, bindings);
  const among = (atoms: readonly AtomTest[], atom: AtomTest, positive: boolean) =>
    atoms.some(
      (other) =>
        other.predicate === atom.predicate &&
        other.positive === positive &&
        keyOf(other) === keyOf(atom),
    );
  const effects = schema.effects.map(({ atom }) => atom);
  return effects.every(
    (atom) =>
      among(schema.required, atom, atom.positive) || (!atom.positive && among(effects, atom, true)),
  );
}

/** What an action makes false and true, deletions first: an addition overrides a deletion. */
export function changesOf(world: World, state: State, action: Action): readonly Change[] {
  const { schema } = action;
  const bindings = new Int32Array(schema.slots);
  bindings.set(action.arguments);
  const view: View = { setting: world, facts: state.facts, optimistic: false };
  const deletions: Change[] = [];
  const additions: Change[] = [];
  for (const { atom, variables, condition, conditionReads } of schema.effects)
    chooseAll(variables, 0, bindings, () => {
      const real = condition === undefined || holds(view, condition, bindings);
      if (real || conditionReads.size > 0) {
        const key = factKey(world.objects, atom.terms, bindings);
        const { predicate, positive } = atom;
        (positive ? additions : deletions).push({ predicate, key, positive, real });
      }
      return false;
    });
  return [...deletions, ...additions];
}

/** The state after changes. */
export function changeState(world: World, state: State, changes: readonly Change[]): State {
  const facts = state.facts.slice();
  const changed = new Set<number>();
  for (const { predicate, key, positive, real } of changes) {
    if (real) {
      const row = facts[predicate]!;
      const next = positive ? withFact(row, key) : withoutFact(row, key);
      if (next !== row) {
        facts[predicate] = next;
        changed.add(predicate);
      }
    }
  }
  const applicable = state.applicable.slice();
  for (const { index, reads } of world.schemas) {
    for (const predicate of changed) {
      if (reads.has(predicate)) {
        applicable[index] = undefined;
        break;
      }
    }
  }
  return { facts, applicable };
}

/** Whether a fact holds, by names; false if the game has no such predicate or object. */
export function factHolds(world: World, facts: Facts, name: string, objects: readonly number[]) {
  const predicate = world.domain.predicateIndex.get(name);
  if (predicate === undefined || world.domain.predicates[predicate]!.arity !== objects.length)
    return false;
  const key = objects.reduce((sum, object) => sum * world.objects.count + object, 0);
  return includes(facts[predicate]!, key);
}
