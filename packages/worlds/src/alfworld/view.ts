/**
 * The fact view: what the grammar sees of the state. It differs from the truth in the same way as
 * the original's: a fact that became false is there as `not_x`, one that was false at the start is
 * not, and conditional effects enter it whatever their condition.
 */

import type { Pattern, Query } from "./grammar.js";
import { type Facts, withFact, withoutFact } from "./objects.js";
import type { Domain } from "./pddl.js";
import type { Change } from "./state.js";
import type { World } from "./world.js";

/** Rows of facts, and after them as many rows of `not_` facts. */
export type FactView = Facts;

/**
 * Bindings of placeholders: a stack. A query pushes what it binds and pops it before it continues,
 * so that nothing is copied.
 */
export interface Bindings {
  readonly names: string[];
  readonly objects: number[];
}

/** The object a name is bound to; -1 if it is unbound. */
export function boundTo(bindings: Bindings, name: string): number {
  const at = bindings.names.indexOf(name);
  return at === -1 ? -1 : bindings.objects[at]!;
}

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

/** What a query's pattern means in a domain. */
interface Target {
  /** The row of the view; -1 if the domain has no such fact. */
  readonly row: number;
  readonly names: readonly string[];
  /** The number of each placeholder's type; -1 if the domain has no such type. */
  readonly types: readonly number[];
}

const NEGATION = "not_";
const targets = new WeakMap<Domain, WeakMap<Pattern, Target>>();

function targetOf(domain: Domain, pattern: Pattern): Target {
  let known = targets.get(domain);
  if (known === undefined) {
    known = new WeakMap();
    targets.set(domain, known);
  }
  let target = known.get(pattern);
  if (target === undefined) {
    target = findTarget(domain, pattern);
    known.set(pattern, target);
  }
  return target;
}

function findTarget(domain: Domain, pattern: Pattern): Target {
  const { predicateIndex, predicates } = domain;
  const { name, placeholders } = pattern;
  const denied = name.startsWith(NEGATION) ? predicateIndex.get(name.slice(NEGATION.length)) : -1;
  const predicate = predicateIndex.get(name) ?? denied ?? -1;
  const known = predicate !== -1 && predicates[predicate]!.arity === placeholders.length;
  const offset = predicateIndex.has(name) ? 0 : predicates.length;
  return {
    row: known ? predicate + offset : -1,
    names: placeholders.map((each) => each.name),
    types: placeholders.map((each) => domain.typeNumbers.get(each.type) ?? -1),
  };
}

/** Whether no action can change the answers of a query. */
export function isFixed(world: World, query: Query): boolean {
  return query.every((pattern) => {
    const { row } = targetOf(world.domain, pattern);
    return row === -1 || !world.fluent[row % world.fluent.length];
  });
}

/**
 * Finds the answers of a query from left to right over the sorted facts. What is already bound
 * stays bound, and two placeholders never stand for the same object. Stops and returns true when
 * `found` does.
 */
export function answer(
  world: World,
  view: FactView,
  query: Query,
  bindings: Bindings,
  found: () => boolean,
  at = 0,
): boolean {
  const pattern = query[at];
  if (pattern === undefined) return found();
  const target = targetOf(world.domain, pattern);
  if (target.row === -1) return false;
  const height = bindings.names.length;
  for (const key of view[target.row]!) {
    const stop =
      agrees(world, target, key, bindings) && answer(world, view, query, bindings, found, at + 1);
    bindings.names.length = height;
    bindings.objects.length = height;
    if (stop) return true;
  }
  return false;
}

/** Whether a fact matches what is bound; binds the rest. */
function agrees(world: World, target: Target, key: number, bindings: Bindings): boolean {
  const { names, types } = target;
  const { count, typeNumbers } = world.objects;
  let weight = count ** (names.length - 1);
  for (let place = 0; place < names.length; place++) {
    const object = Math.floor(key / weight) % count;
    weight /= count;
    if (typeNumbers[object] !== types[place]) return false;
    const known = boundTo(bindings, names[place]!);
    if (known === -1) {
      if (bindings.objects.includes(object)) return false;
      bindings.names.push(names[place]!);
      bindings.objects.push(object);
    } else if (known !== object) {
      return false;
    }
  }
  return true;
}
