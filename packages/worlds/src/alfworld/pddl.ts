/**
 * PDDL domains and problems, as far as games use them: types, constants, predicates, actions with
 * quantified and conditional effects, initial facts and a goal. Costs are skipped; an unknown
 * construct is an error that names it.
 */
import {
  type AtomFormula,
  emptyScope,
  expectList,
  expectWord,
  type Formula,
  type List,
  type Node,
  type Predicate,
  parseExpression,
  predicateOf,
  type Reader,
  readAtom,
  readFormula,
  readTypedNames,
  readVariables,
  type Scope,
  type Variable,
  written,
} from "./formula.js";
import { excerpt, fault, type Source } from "./games.js";

/**
 * One literal that an action makes true or false, for all `variables` for which `condition` holds.
 */
interface Effect {
  readonly atom: AtomFormula;
  readonly variables: readonly Variable[];
  readonly condition: Formula | undefined;
}

/** An action schema with unbound variables. */
export interface ActionSchema {
  readonly name: string;
  readonly parameters: readonly Variable[];
  readonly precondition: Formula;
  readonly effects: readonly Effect[];
  /** The number of slots for its variables. */
  readonly slots: number;
}

/** What games of one version share. */
export interface Domain {
  /** Every declared type with its parent; the root is `object`. */
  readonly types: ReadonlyMap<string, string>;
  /** A number for every declared type and the root. */
  readonly typeNumbers: ReadonlyMap<string, number>;
  readonly predicates: readonly Predicate[];
  readonly predicateIndex: ReadonlyMap<string, number>;
  readonly objects: readonly TypedName[];
  readonly actions: readonly ActionSchema[];
  /** The names that constant terms of the actions refer to. */
  readonly constants: readonly string[];
}

/** An object with its declared type. */
interface TypedName {
  readonly name: string;
  readonly type: string;
}

/** One initial fact: a predicate and the names of its arguments, with its line for errors. */
interface InitialFact {
  readonly predicate: number;
  readonly names: readonly string[];
  readonly line: number;
}

/** What is specific to one game. */
export interface Problem {
  readonly objects: readonly TypedName[];
  readonly facts: readonly InitialFact[];
  readonly goal: Formula;
  readonly goalSlots: number;
  /** The names that constant terms of the goal refer to. */
  readonly constants: readonly string[];
}

/** The sections of `(define (domain …) …)` by keyword; unknown ones are rejected. */
function sections(source: Source, kind: "domain" | "problem", known: readonly string[]) {
  const root = parseExpression(source);
  const title = root.items[1];
  const head = title?.kind === "list" ? title.items[0] : undefined;
  const define = root.items[0];
  if (define?.kind !== "word" || define.text !== "define")
    throw fault(source, root.line, "expected `(define …)`");
  if (head?.kind !== "word" || head.text !== kind)
    throw fault(source, root.line, `expected \`(define (${kind} …) …)\``);
  return root.items.slice(2).map((node) => {
    const list = expectList(source, node, node.line, "a section");
    const keyword = expectWord(source, list.items[0], list.line, "a section's keyword");
    if (!known.includes(keyword.text))
      throw fault(source, keyword.line, `unknown construct \`${keyword.text}\` in a ${kind}`);
    return { keyword: keyword.text, list, rest: list.items.slice(1) };
  });
}

const DOMAIN_SECTIONS = ":requirements :types :constants :predicates :functions :action".split(" ");
const PROBLEM_SECTIONS = ":domain :requirements :objects :init :goal :metric".split(" ");

/** Parses a domain. */
export function parseDomain(source: Source): Domain {
  const parts = sections(source, "domain", DOMAIN_SECTIONS);
  const types = new Map<string, string>();
  const predicates: Predicate[] = [];
  const predicateIndex = new Map<string, number>();
  const objects: TypedName[] = [];
  for (const { keyword, rest } of parts) {
    if (keyword === ":types") {
      for (const { word, type } of readTypedNames(source, rest)) types.set(word.text, type);
    } else if (keyword === ":constants") {
      objects.push(...readObjects(source, rest, types));
    } else if (keyword === ":predicates") {
      for (const node of rest) {
        const list = expectList(source, node, node.line, "a predicate");
        const head = expectWord(source, list.items[0], list.line, "a predicate's name");
        const { variables } = readVariables(
          source,
          { ...list, items: list.items.slice(1) },
          emptyScope(),
        );
        if (predicateIndex.has(head.text))
          throw fault(source, head.line, `the predicate \`${head.text}\` is declared twice`);
        predicateIndex.set(head.text, predicates.length);
        predicates.push({ name: head.text, arity: variables.length });
      }
    }
  }
  const reader: Reader = { source, predicates, predicateIndex, constants: [] };
  const actions = parts
    .filter(({ keyword }) => keyword === ":action")
    .map(({ list }) => readAction(reader, list));
  const { constants } = reader;
  const typeNumbers = new Map([...new Set(["object", ...types.keys()])].map((t, at) => [t, at]));
  return { types, typeNumbers, predicates, predicateIndex, objects, actions, constants };
}

function readAction(reader: Reader, list: List): ActionSchema {
  const { source } = reader;
  const name = expectWord(source, list.items[1], list.line, "an action's name").text;
  const fields = new Map<string, Node>();
  for (let at = 2; at < list.items.length; at += 2) {
    const key = expectWord(source, list.items[at], list.line, "a field such as `:effect`");
    const value = list.items[at + 1];
    if (![":parameters", ":precondition", ":effect"].includes(key.text))
      throw fault(source, key.line, `unknown construct \`${key.text}\` in action \`${name}\``);
    if (value === undefined)
      throw fault(source, key.line, `\`${key.text}\` of action \`${name}\` has no value`);
    fields.set(key.text, value);
  }
  const nothing: List = { kind: "list", items: [], line: list.line };
  const declared = fields.get(":parameters") ?? nothing;
  const parameterList = expectList(source, declared, declared.line, "the parameters");
  const { variables, scope } = readVariables(source, parameterList, emptyScope());
  const precondition = readFormula(reader, fields.get(":precondition") ?? nothing, scope);
  const effects: Effect[] = [];
  readEffects(reader, fields.get(":effect") ?? nothing, scope, [], undefined, effects);
  return { name, parameters: variables, precondition, effects, slots: scope.counter.next };
}

/** The number of parts in the constructs of an effect. */
const EFFECT_PARTS = new Map([
  ["not", 1],
  ["forall", 2],
  ["when", 2],
  ["increase", 2],
]);

function readEffects(
  reader: Reader,
  node: Node,
  scope: Scope,
  variables: readonly Variable[],
  condition: Formula | undefined,
  effects: Effect[],
): void {
  const { source } = reader;
  const list = expectList(source, node, node.line, "an effect");
  if (list.items.length === 0) return;
  const head = expectWord(source, list.items[0], list.line, "an effect");
  const rest = list.items.slice(1);
  const wanted = EFFECT_PARTS.get(head.text);
  if (wanted !== undefined && wanted !== rest.length) {
    const message = `\`${head.text}\` takes ${wanted} parts, found ${rest.length}`;
    throw fault(source, head.line, message);
  }
  switch (head.text) {
    case "and":
      for (const part of rest) readEffects(reader, part, scope, variables, condition, effects);
      return;
    case "forall": {
      const declared = expectList(source, rest[0], head.line, "the variables of the quantifier");
      const inner = readVariables(source, declared, scope);
      const all = [...variables, ...inner.variables];
      readEffects(reader, rest[1]!, inner.scope, all, condition, effects);
      return;
    }
    case "when": {
      const when = readFormula(reader, rest[0]!, scope);
      const both: Formula =
        condition === undefined ? when : { op: "and", parts: [condition, when] };
      readEffects(reader, rest[1]!, scope, variables, both, effects);
      return;
    }
    case "increase":
      return; // a cost: it changes what a plan costs, never what is true
    case "not": {
      const inner = expectList(source, rest[0], head.line, "a predicate after `not`");
      effects.push({ atom: readAtom(reader, inner, scope, false), variables, condition });
      return;
    }
    default:
      effects.push({ atom: readAtom(reader, list, scope, true), variables, condition });
  }
}

function readObjects(
  source: Source,
  nodes: readonly Node[],
  types: ReadonlyMap<string, string>,
): readonly TypedName[] {
  return readTypedNames(source, nodes).map(({ word, type }) => {
    if (type !== "object" && !types.has(type))
      throw fault(source, word.line, `the type \`${type}\` of \`${word.text}\` is not declared`);
    return { name: word.text, type };
  });
}

/** Parses a problem of a domain. */
export function parseProblem(source: Source, domain: Domain): Problem {
  const { predicates, predicateIndex } = domain;
  const reader: Reader = { source, predicates, predicateIndex, constants: [] };
  const scope = emptyScope();
  const objects: TypedName[] = [...domain.objects];
  const facts: InitialFact[] = [];
  let goal: Formula | undefined;
  for (const { keyword, list, rest } of sections(source, "problem", PROBLEM_SECTIONS)) {
    if (keyword === ":objects") {
      objects.push(...readObjects(source, rest, domain.types));
    } else if (keyword === ":init") {
      for (const node of rest) {
        const fact = readFact(reader, node);
        if (fact !== undefined) facts.push(fact);
      }
    } else if (keyword === ":goal") {
      if (rest.length !== 1)
        throw fault(source, list.line, `\`:goal\` takes 1 condition, found ${rest.length}`);
      goal = readFormula(reader, rest[0]!, scope);
    }
  }
  if (goal === undefined) throw fault(source, 1, "expected a `(:goal …)`, found none");
  const { constants } = reader;
  return { objects, facts, goal, goalSlots: scope.counter.next, constants };
}

/** Reads an initial fact; numeric values and negated facts are skipped. */
function readFact(reader: Reader, node: Node): InitialFact | undefined {
  const list = expectList(reader.source, node, node.line, "a fact");
  const head = expectWord(reader.source, list.items[0], list.line, "a predicate");
  if (head.text === "=" || head.text === "not") return undefined;
  const predicate = predicateOf(reader, head, list.items.length - 1);
  const names = new Array<string>(list.items.length - 1);
  for (let at = 1; at < list.items.length; at++) {
    const item = list.items[at]!;
    if (item.kind !== "word")
      throw fault(reader.source, item.line, `expected an object, found ${excerpt(written(item))}`);
    names[at - 1] = item.text;
  }
  return { predicate, names, line: list.line };
}
