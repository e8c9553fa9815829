/** Interprets a game's grammar: every sentence of a game comes from the game itself. */
import { EnvError } from "../env.js";
import type { Grammar, Rule } from "./grammar.js";
import type { Attribute, Expression, Phrase, Query, Slot } from "./phrase.js";
import { answer, type Bindings, type FactView, isFixed } from "./view.js";
import type { World } from "./world.js";

/** What a phrase is told in: the game's words, names and facts. */
export interface Narration {
  readonly file: string;
  readonly grammar: Grammar;
  readonly world: World;
  /** The names of the objects, by number. */
  readonly names: readonly string[];
  readonly view: FactView;
}

/** A derivation of more expansions than this is an endless or explosive grammar. */
const MOST_EXPANSIONS = 20_000;
const DEEPEST = 100;

/** Symbols that lists are put together with. */
const LIST_EMPTY = "list_empty";
const LIST_SEPARATOR = "list_separator";
const LIST_LAST_SEPARATOR = "list_last_separator";
const LIST_SYMBOLS = [LIST_EMPTY, LIST_SEPARATOR, LIST_LAST_SEPARATOR];

/** Tells a phrase with what is bound. */
export function tell(narration: Narration, phrase: Phrase, bindings: Bindings): string {
  const { file, grammar, world, view } = narration;
  let expansions = 0;
  const wrong = (message: string) => new EnvError(`${file}: grammar: ${message}`);

  const expand = (name: string, bound: Bindings, depth: number): string => {
    expansions++;
    if (depth > DEEPEST || expansions > MOST_EXPANSIONS) {
      throw wrong(`the symbol \`${name}\` expands without end`);
    }
    const rules = grammar.rules.get(name);
    if (rules === undefined) {
      throw wrong(`unknown symbol \`#${name}#\``);
    }
    const rule = rules.find(
      ({ condition }) =>
        condition === undefined || answer(world, view, condition, bound, () => true),
    );
    if (rule === undefined) {
      throw wrong(`no rule of \`${name}\` applies; one without a condition is missing`);
    }
    return pieces(rule.phrase, bound, depth);
  };

  const pieces = (parts: Phrase, bound: Bindings, depth: number): string => {
    let text = "";
    for (const piece of parts) {
      if (piece.op === "literal") {
        text += piece.text;
      } else if (piece.op === "symbol") {
        text += expand(piece.name, bound, depth + 1);
      } else if (piece.op === "slot") {
        text += items(piece, bound, depth).join("");
      } else {
        text += list(items(piece.slot, bound, depth), bound, depth);
      }
    }
    return text;
  };

  const items = (slot: Slot, bound: Bindings, depth: number): readonly string[] => {
    const found: string[] = [];
    const add = (inner: Bindings): boolean => {
      const { value } = slot;
      found.push(
        value.op === "symbol" ? expand(value.name, inner, depth + 1) : evaluate(value, inner),
      );
      if (found.length > MOST_EXPANSIONS) {
        throw wrong("a list has no end in sight");
      }
      return false;
    };
    if (slot.query === undefined) {
      add(bound);
    } else {
      answer(world, view, slot.query, bound, add);
    }
    return found;
  };

  const list = (found: readonly string[], bound: Bindings, depth: number): string => {
    if (found.length < 2) {
      return found[0] ?? expand(LIST_EMPTY, bound, depth + 1);
    }
    const separator = found.length > 2 ? expand(LIST_SEPARATOR, bound, depth + 1) : "";
    const last = expand(LIST_LAST_SEPARATOR, bound, depth + 1);
    return found.slice(0, -1).join(separator) + last + found.at(-1);
  };

  const evaluate = (expression: Expression, bound: Bindings): string => {
    switch (expression.op) {
      case "text":
        return expression.text;
      case "+":
        return expression.parts.map((part) => evaluate(part, bound)).join("");
      case "or": {
        let value = "";
        for (const part of expression.parts) {
          value = evaluate(part, bound);
          if (value !== "") {
            break;
          }
        }
        return value;
      }
      case "attribute": {
        const object = bound.get(expression.variable);
        if (object === undefined) {
          throw wrong(`nothing is bound to \`${expression.variable}\``);
        }
        return attributeOf(narration, object, expression.attribute);
      }
    }
  };

  return pieces(phrase, bindings, 0);
}

function attributeOf(narration: Narration, object: number, attribute: Attribute): string {
  switch (attribute) {
    case "name":
      return narration.names[object]!;
    case "id":
      return narration.world.objects.names[object]!;
    case "type":
      return narration.world.objects.types[object]!;
    case "definite":
      return "the";
    case "indefinite":
      return "a"; // before vowels too: the original knows no other
  }
}

/** Whether a phrase, with the same bindings, says the same in every state. */
export function isConstant(world: World, grammar: Grammar, phrase: Phrase): boolean {
  const seen = new Set<string>();
  const query = (asked: Query | undefined) => asked === undefined || isFixed(world, asked);
  const rules = (all: readonly Rule[]): boolean =>
    all.every((rule) => query(rule.condition) && constant(rule.phrase));
  const symbol = (name: string): boolean => {
    if (seen.has(name)) {
      return true;
    }
    seen.add(name);
    return rules(grammar.rules.get(name) ?? []);
  };
  const slot = (each: Slot) =>
    query(each.query) && (each.value.op !== "symbol" || symbol(each.value.name));
  const piece = (each: Phrase[number]): boolean => {
    switch (each.op) {
      case "literal":
        return true;
      case "symbol":
        return symbol(each.name);
      case "slot":
        return slot(each);
      case "list":
        return slot(each.slot) && LIST_SYMBOLS.every((name) => symbol(name));
    }
  };
  const constant = (parts: Phrase): boolean => parts.every(piece);
  return constant(phrase);
}
