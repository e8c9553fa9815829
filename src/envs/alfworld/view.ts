/**
 * The fact view: what the grammar is told of the state. It differs from the truth as the original's
 * does: a fact that became false is there as `not_x`, one that was false at the start is not, and
 * conditional effects enter it whatever their condition.
 */
import { type Facts, withFact, withoutFact } from "./facts.js";
import type { Pattern, Query } from "./phrase.js";
import type { Change } from "./state.js";
import type { World } from "./world.js";

/** Rows of facts, and after them as many rows of `not_` facts. */
export type FactView = Facts;

/** The objects that placeholders stand for, by name, in the order they were bound. */
export type Bindings = ReadonlyMap<string, number>;

/** The view at the start of a game. */
export function initialView(world: World): FactView {
  return [...world.initial, ...world.initial.map(() => [])];
}

/** The view after changes. */
export function changeView(view: FactView, changes: readonly Change[]): FactView {
  const rows = view.slice();
  const half = view.length / 2;
  for (const { predicate, key, positive } of changes) {
    const on = positive ? predicate : predicate + half;
    const off = positive ? predicate + half : predicate;
    rows[on] = withFact(rows[on]!, key);
    rows[off] = withoutFact(rows[off]!, key);
  }
  return rows;
}

const NEGATION = "not_";

/** The row of a view that a pattern speaks of, and whether actions change it. */
function rowOf(world: World, pattern: Pattern): { row: number; arity: number } | undefined {
  const { predicateIndex, predicates } = world.domain;
  let predicate = predicateIndex.get(pattern.name);
  let row = predicate;
  if (predicate === undefined && pattern.name.startsWith(NEGATION)) {
    predicate = predicateIndex.get(pattern.name.slice(NEGATION.length));
    row = predicate === undefined ? undefined : predicate + predicates.length;
  }
  if (predicate === undefined || row === undefined) {
    return undefined;
  }
  return { row, arity: predicates[predicate]!.arity };
}

/** Whether no action can change the answers of a query. */
export function isFixed(world: World, query: Query): boolean {
  return query.every((pattern) => {
    const found = rowOf(world, pattern);
    return found === undefined || !world.fluent[found.row % world.fluent.length];
  });
}

/**
 * Finds the answers of a query from left to right over the sorted facts. What is bound before stays
 * bound, and two placeholders never stand for the same object. Stops, and is true, when `found`
 * says so.
 */
export function answer(
  world: World,
  view: FactView,
  query: Query,
  bindings: Bindings,
  found: (bindings: Bindings) => boolean,
): boolean {
  const bound = new Map(bindings);
  const used = new Set(bindings.values());
  const { count, types } = world.objects;
  const next = (at: number): boolean => {
    const pattern = query[at];
    if (pattern === undefined) {
      return found(new Map(bound));
    }
    const target = rowOf(world, pattern);
    const { placeholders } = pattern;
    if (target === undefined || target.arity !== placeholders.length) {
      return false;
    }
    for (const key of view[target.row]!) {
      const fresh: { readonly name: string; readonly object: number }[] = [];
      let weight = count ** placeholders.length;
      let agrees = true;
      for (const { name, type } of placeholders) {
        weight /= count;
        const object = Math.floor(key / weight) % count;
        const known = bound.get(name);
        if (types[object] !== type || (known === undefined ? used.has(object) : known !== object)) {
          agrees = false;
          break;
        }
        if (known === undefined) {
          bound.set(name, object);
          used.add(object);
          fresh.push({ name, object });
        }
      }
      const stop = agrees && next(at + 1);
      for (const { name, object } of fresh) {
        bound.delete(name);
        used.delete(object);
      }
      if (stop) {
        return true;
      }
    }
    return false;
  };
  return next(0);
}
