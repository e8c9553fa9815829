/** Interprets a game's grammar: every sentence of a game comes from the game itself. */
import { EnvError } from "@pawl/core/envs/env.js";
import type { Attribute, Expression, Grammar, Phrase, Piece, Query, Slot } from "./grammar.js";
import { answer, type Bindings, boundTo, type FactView, isFixed } from "./view.js";
import type { World } from "./world.js";

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
