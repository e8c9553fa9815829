/** Interprets a game's grammar: every sentence of a game comes from the game itself. */
import { EnvError } from "@pawl/core/envs/env.js";
import type {
  Attribute,
  Expression,
  Grammar,
  Pattern,
  Phrase,
  Piece,
  Query,
  Slot,
} from "./grammar.js";
import { type Facts, withFact, withoutFact } from "./objects.js";
import type { Domain } from "./pddl.js";
import type { Change } from "./state.js";
import type { World } from "./world.js";

// The fact view: what the grammar sees of the state. It differs from the truth in the same way as
// the original's: a fact that became false is there as `not_x`, one that was false at the start is
// not, and conditional effects enter it whatever their condition.

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
function boundTo(bindings: Bindings, name: string): number {
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
function isFixed(world: World, query: Query): boolean {
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
function answer(
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

/** The grammar and names that a game's texts are made from. */
export interface Teller {
  readonly file: string;
  readonly grammar: Grammar;
  readonly world: World;
  /** The names of the objects, by number. */
  readonly names: readonly string[];
}

/** One expansion: what is bound, and how much of the grammar it has used. */
interface Telling extends Teller {
  readonly view: FactView;
  readonly bindings: Bindings;
  expansions: number;
}

/** More expansions than this mean an endless or explosive grammar. */
const MOST_EXPANSIONS = 20_000;
const DEEPEST = 100;

/** Symbols for joining lists. */
const LIST_EMPTY = "list_empty";
const LIST_SEPARATOR = "list_separator";
const LIST_LAST_SEPARATOR = "list_last_separator";
const LIST_SYMBOLS = [LIST_EMPTY, LIST_SEPARATOR, LIST_LAST_SEPARATOR];

/** Expands a phrase with what is bound. */
export function tell(teller: Teller, view: FactView, phrase: Phrase, bindings: Bindings): string {
  const { file, grammar, world, names } = teller;
  return tellPhrase({ file, grammar, world, names, view, bindings, expansions: 0 }, phrase, 0);
}

function wrong(telling: Telling, message: string): EnvError {
  return new EnvError(`${telling.file}: grammar: ${message}`);
}

function tellSymbol(telling: Telling, name: string, depth: number): string {
  telling.expansions++;
  if (depth > DEEPEST || telling.expansions > MOST_EXPANSIONS)
    throw wrong(telling, `the symbol \`${name}\` expands without end`);
  const rules = telling.grammar.rules.get(name);
  if (rules === undefined) throw wrong(telling, `unknown symbol \`#${name}#\``);
  const { world, view, bindings } = telling;
  for (const { condition, phrase } of rules) {
    if (condition === undefined || answer(world, view, condition, bindings, () => true))
      return tellPhrase(telling, phrase, depth);
  }
  throw wrong(telling, `no rule of \`${name}\` applies; one without a condition is missing`);
}

function tellPhrase(telling: Telling, phrase: Phrase, depth: number): string {
  let text = "";
  for (const piece of phrase) {
    if (piece.op === "literal") text += piece.text;
    else if (piece.op === "symbol") text += tellSymbol(telling, piece.name, depth + 1);
    else if (piece.op === "slot") text += tellItems(telling, piece, depth).join("");
    else text += tellList(telling, tellItems(telling, piece.slot, depth), depth);
  }
  return text;
}

/** A slot's text for every answer of its query. */
function tellItems(telling: Telling, slot: Slot, depth: number): readonly string[] {
  const { value, query } = slot;
  const item = () =>
    value.op === "symbol" ? tellSymbol(telling, value.name, depth + 1) : evaluate(telling, value);
  if (query === undefined) return [item()];
  const items: string[] = [];
  answer(telling.world, telling.view, query, telling.bindings, () => {
    items.push(item());
    telling.expansions++;
    if (telling.expansions > MOST_EXPANSIONS) throw wrong(telling, "a list has no end in sight");
    return false;
  });
  return items;
}

function tellList(telling: Telling, items: readonly string[], depth: number): string {
  if (items.length < 2) return items[0] ?? tellSymbol(telling, LIST_EMPTY, depth + 1);
  const separator = items.length > 2 ? tellSymbol(telling, LIST_SEPARATOR, depth + 1) : "";
  const last = tellSymbol(telling, LIST_LAST_SEPARATOR, depth + 1);
  return items.slice(0, -1).join(separator) + last + items.at(-1);
}

function evaluate(telling: Telling, expression: Expression): string {
  switch (expression.op) {
    case "text":
      return expression.text;
    case "+":
      return expression.parts.map((part) => evaluate(telling, part)).join("");
    case "or":
      for (const part of expression.parts) {
        const value = evaluate(telling, part);
        if (value !== "") return value;
      }
      return "";
    case "attribute": {
      const object = boundTo(telling.bindings, expression.variable);
      if (object === -1) throw wrong(telling, `nothing is bound to \`${expression.variable}\``);
      return attributeOf(telling, object, expression.attribute);
    }
  }
}

function attributeOf(teller: Teller, object: number, attribute: Attribute): string {
  switch (attribute) {
    case "name":
      return teller.names[object]!;
    case "id":
      return teller.world.objects.names[object]!;
    case "type":
      return teller.world.objects.types[object]!;
    case "definite":
      return "the";
    case "indefinite":
      return "a"; // before vowels too, as in the original
  }
}

/** What a phrase's text depends on. */
export interface Dependence {
  /** Whether it depends on the state: some query asks for facts that actions change. */
  readonly state: boolean;
  /** The names it reads that are bound from outside; others are bound by its queries. */
  readonly names: ReadonlySet<string>;
}

/** Determines what a phrase's text depends on, through all symbols it can reach. */
export function dependenceOf(world: World, grammar: Grammar, phrase: Phrase): Dependence {
  const names = new Set<string>();
  const seen = new Set<string>();
  let state = false;
  const query = (asked: Query | undefined) => {
    if (asked !== undefined) {
      state ||= !isFixed(world, asked);
      for (const { placeholders } of asked) {
        for (const { name } of placeholders) names.add(name);
      }
    }
  };
  const expression = (value: Expression): void => {
    if (value.op === "attribute") names.add(value.variable);
    else if (value.op !== "text") value.parts.forEach(expression);
  };
  const symbol = (name: string): void => {
    if (!seen.has(name)) {
      seen.add(name);
      for (const rule of grammar.rules.get(name) ?? []) {
        query(rule.condition);
        rule.phrase.forEach(piece);
      }
    }
  };
  const slot = (each: Slot) => {
    query(each.query);
    if (each.value.op === "symbol") symbol(each.value.name);
    else expression(each.value);
  };
  const piece = (each: Piece): void => {
    if (each.op === "symbol") {
      symbol(each.name);
    } else if (each.op === "slot") {
      slot(each);
    } else if (each.op === "list") {
      slot(each.slot);
      LIST_SYMBOLS.forEach(symbol);
    }
  };
  phrase.forEach(piece);
  return { state, names };
}
