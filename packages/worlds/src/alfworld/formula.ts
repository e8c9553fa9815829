/**
 * PDDL conditions in negation normal form: `not` occurs only before atoms, so that evaluation and
 * the expert's relaxation need no polarity.
 */
import { excerpt, fault, type Source } from "./games.js";

/** A word. */
interface Word {
  readonly kind: "word";
  readonly text: string;
  readonly line: number;
}

/** A parenthesised list. */
export interface List {
  readonly kind: "list";
  readonly items: readonly Node[];
  readonly line: number;
}

export type Node = Word | List;

interface OpenList extends List {
  readonly items: Node[];
}

/** Deeper nesting is rejected: the parsers built on this recurse. */
const DEEPEST = 200;

/** Parses the single expression of a text, lower-cased as in PDDL, without its `;` comments. */
export function parseExpression(source: Source): List {
  const text = source.text.toLowerCase();
  const stack: OpenList[] = [];
  let root: List | undefined;
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 10) {
      line++;
      at++;
    } else if (code <= 32) {
      at++;
    } else if (code === 59) {
      const end = text.indexOf("\n", at);
      at = end === -1 ? text.length : end;
    } else if (code === 40) {
      if (root !== undefined && stack.length === 0)
        throw fault(source, line, "expected the end after the first expression, found another `(`");
      if (stack.length === DEEPEST)
        throw fault(source, line, `expressions are nested more than ${DEEPEST} deep`);
      const list: OpenList = { kind: "list", items: [], line };
      stack.at(-1)?.items.push(list);
      root ??= list;
      stack.push(list);
      at++;
    } else if (code === 41) {
      if (stack.pop() === undefined) throw fault(source, line, "`)` closes nothing");
      at++;
    } else {
      const start = at;
      at = endOfWord(text, at);
      const parent = stack.at(-1);
      if (parent === undefined)
        throw fault(source, line, `expected \`(\`, found the word \`${text.slice(start, at)}\``);
      parent.items.push({ kind: "word", text: text.slice(start, at), line });
    }
  }
  const open = stack.at(-1);
  if (open !== undefined)
    throw fault(source, line, `the text ends inside the list that line ${open.line} opens`);
  if (root === undefined) throw fault(source, line, "expected an expression, found nothing");
  return root;
}

function endOfWord(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code <= 32 || code === 40 || code === 41 || code === 59) break;
    at++;
  }
  return at;
}

/** The expression as it would be written, for errors. */
export function written(node: Node): string {
  return node.kind === "word" ? node.text : `(${node.items.map(written).join(" ")})`;
}

/** A variable's slot (0 and up), or `~i` for the i-th name of the constants table. */
export type Term = number;

/** A typed variable and the slot its value is kept in. */
export interface Variable {
  readonly name: string;
  readonly slot: number;
  readonly type: string;
}

/** One predicate over terms, or its negation. */
export interface AtomFormula {
  readonly op: "atom";
  readonly positive: boolean;
  readonly predicate: number;
  readonly terms: readonly Term[];
}

export type Formula =
  | AtomFormula
  | { readonly op: "equal"; readonly positive: boolean; readonly left: Term; readonly right: Term }
  | { readonly op: "and" | "or"; readonly parts: readonly Formula[] }
  | {
      readonly op: "exists" | "forall";
      readonly variables: readonly Variable[];
      readonly body: Formula;
    };

/** A declared predicate. */
export interface Predicate {
  readonly name: string;
  readonly arity: number;
}

/** What the formula parser knows and collects: one per domain and one per problem. */
export interface Reader {
  readonly source: Source;
  readonly predicates: readonly Predicate[];
  readonly predicateIndex: ReadonlyMap<string, number>;
  /** Names of the constants met so far. */
  readonly constants: string[];
}

/** The variables in scope, and the number of allocated slots. */
export interface Scope {
  readonly slots: ReadonlyMap<string, number>;
  readonly counter: { next: number };
}

/** A scope without variables. */
export function emptyScope(): Scope {
  return { slots: new Map(), counter: { next: 0 } };
}

/** A word's text, or an error that says what was expected. */
export function expectWord(source: Source, node: Node | undefined, line: number, what: string) {
  if (node?.kind !== "word") {
    const found = node === undefined ? "nothing" : excerpt(written(node));
    throw fault(source, node?.line ?? line, `expected ${what}, found ${found}`);
  }
  return node;
}

/** A list, or an error that says what was expected. */
export function expectList(
  source: Source,
  node: Node | undefined,
  line: number,
  what: string,
): List {
  if (node?.kind !== "list") {
    const found = node === undefined ? "nothing" : `\`${node.text}\``;
    throw fault(source, node?.line ?? line, `expected ${what} in parentheses, found ${found}`);
  }
  return node;
}

/** Reads `a b - t c - u d`: names with their types; a name without a type is an `object`. */
export function readTypedNames(
  source: Source,
  nodes: readonly Node[],
): readonly { readonly word: Word; readonly type: string }[] {
  const typed: { word: Word; type: string }[] = [];
  let untyped: Word[] = [];
  for (let at = 0; at < nodes.length; at++) {
    const word = expectWord(source, nodes[at], 0, "a name");
    if (word.text === "-") {
      const type = expectWord(source, nodes[++at], word.line, "a type after `-`").text;
      typed.push(...untyped.map((each) => ({ word: each, type })));
      untyped = [];
    } else {
      untyped.push(word);
    }
  }
  return [...typed, ...untyped.map((word) => ({ word, type: "object" }))];
}

/** Reads a list of variables into fresh slots, with the scope in which they are known. */
export function readVariables(
  source: Source,
  list: List,
  scope: Scope,
): { readonly variables: readonly Variable[]; readonly scope: Scope } {
  const slots = new Map(scope.slots);
  const variables = readTypedNames(source, list.items).map(({ word, type }) => {
    if (!word.text.startsWith("?"))
      throw fault(source, word.line, `expected a variable such as \`?x\`, found \`${word.text}\``);
    const slot = scope.counter.next++;
    slots.set(word.text, slot);
    return { name: word.text.slice(1), slot, type };
  });
  return { variables, scope: { slots, counter: scope.counter } };
}

/** Reads a term. */
function readTerm(reader: Reader, node: Node, scope: Scope): Term {
  const word = expectWord(reader.source, node, node.line, "a variable or a constant");
  if (word.text.startsWith("?")) {
    const slot = scope.slots.get(word.text);
    if (slot === undefined)
      throw fault(reader.source, word.line, `the variable \`${word.text}\` is not declared here`);
    return slot;
  }
  const known = reader.constants.indexOf(word.text);
  return ~(known === -1 ? reader.constants.push(word.text) - 1 : known);
}

/** Reads a predicate with its terms. */
export function readAtom(reader: Reader, list: List, scope: Scope, positive: boolean): AtomFormula {
  const head = expectWord(reader.source, list.items[0], list.line, "a predicate");
  const predicate = predicateOf(reader, head, list.items.length - 1);
  const terms = list.items.slice(1).map((node) => readTerm(reader, node, scope));
  return { op: "atom", positive, predicate, terms };
}

/** The index of a predicate; throws if it is not declared with this many arguments. */
export function predicateOf(reader: Reader, head: Word, count: number): number {
  const predicate = reader.predicateIndex.get(head.text);
  if (predicate === undefined)
    throw fault(reader.source, head.line, `unknown construct or predicate \`${head.text}\``);
  const { arity } = reader.predicates[predicate]!;
  if (count !== arity) {
    const message = `\`${head.text}\` takes ${arity} arguments, found ${count}`;
    throw fault(reader.source, head.line, message);
  }
  return predicate;
}

/** Reads a condition; `()` is the condition that always holds. */
export function readFormula(reader: Reader, node: Node, scope: Scope, positive = true): Formula {
  const { source } = reader;
  const list = expectList(source, node, node.line, "a condition");
  if (list.items.length === 0) return { op: positive ? "and" : "or", parts: [] };
  const head = expectWord(source, list.items[0], list.line, "a connective or a predicate");
  const rest = list.items.slice(1);
  const count = (wanted: number) => {
    if (rest.length !== wanted) {
      const message = `\`${head.text}\` takes ${wanted} parts, found ${rest.length}`;
      throw fault(source, head.line, message);
    }
  };
  switch (head.text) {
    case "and":
    case "or": {
      const parts = rest.map((part) => readFormula(reader, part, scope, positive));
      return { op: (head.text === "and") === positive ? "and" : "or", parts };
    }
    case "not":
      count(1);
      return readFormula(reader, rest[0]!, scope, !positive);
    case "imply": {
      count(2);
      const premise = readFormula(reader, rest[0]!, scope, !positive);
      const conclusion = readFormula(reader, rest[1]!, scope, positive);
      return { op: positive ? "or" : "and", parts: [premise, conclusion] };
    }
    case "exists":
    case "forall": {
      count(2);
      const declared = expectList(source, rest[0], head.line, "the variables of the quantifier");
      const inner = readVariables(source, declared, scope);
      const body = readFormula(reader, rest[1]!, inner.scope, positive);
      const op = (head.text === "exists") === positive ? "exists" : "forall";
      return { op, variables: inner.variables, body };
    }
    case "=": {
      count(2);
      const [left, right] = rest.map((term) => readTerm(reader, term, scope));
      return { op: "equal", positive, left: left!, right: right! };
    }
    default:
      return readAtom(reader, list, scope, positive);
  }
}
