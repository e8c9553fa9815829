/**
 * TextWorld's logic language: types, rules, and the commands and events that belong to rules. What
 * only making games needs (constraints, reverse rules, Inform's code) is skipped.
 */
import { EnvError } from "@pawl/core/envs/env.js";

/** A place in a rule that stands for an entity of a type. */
interface Placeholder {
  readonly name: string;
  readonly type: string;
}

/** A predicate with placeholders. */
export interface Atom {
  readonly predicate: string;
  readonly arguments: readonly Placeholder[];
}

/** What an action needs and leaves behind. */
export interface Rule {
  readonly name: string;
  readonly before: readonly Atom[];
  readonly after: readonly Atom[];
  /** What a player types, with placeholders in braces; none if nothing triggers it. */
  readonly command: string | undefined;
  /** What the story says it did. */
  readonly event: string | undefined;
}

/** The rules of a game, in order of name, and the ancestors of each type, itself included. */
export interface Logic {
  readonly rules: readonly Rule[];
  readonly ancestors: ReadonlyMap<string, ReadonlySet<string>>;
}

interface Definitions {
  readonly parents: Map<string, readonly string[]>;
  readonly rules: Map<
    string,
    { readonly before: readonly Atom[]; readonly after: readonly Atom[] }
  >;
  readonly aliases: Map<string, { readonly left: Atom; readonly right: readonly Atom[] }>;
  readonly commands: Map<string, readonly [command: string, event: string]>;
}

/** Parses the rules of a game; `file` is named in errors. */
export function parseLogic(file: string, text: string): Logic {
  const found: Definitions = {
    parents: new Map(),
    rules: new Map(),
    aliases: new Map(),
    commands: new Map(),
  };
  const reader = createReader(file, logicTokens(file, text));
  while (!reader.atEnd()) readType(reader, found);
  const rules = [...found.rules].map(([name, { before, after }]): Rule => {
    const [command, event] = found.commands.get(name) ?? [];
    const expanded = (atoms: readonly Atom[]) => atoms.flatMap((atom) => expand(file, found, atom));
    return { name, before: expanded(before), after: expanded(after), command, event };
  });
  for (const rule of rules) checkTemplates(file, rule);
  rules.sort((left, right) => (left.name < right.name ? -1 : 1));
  return { rules, ancestors: ancestorsOf(found.parents) };
}

interface Reader {
  atEnd(): boolean;
  /** Whether the next token is this sign or name; if so, it is taken. */
  take(value: string): boolean;
  expect(value: string): void;
  any(kind: Token["kind"], what: string): string;
  /** Skips a block in braces, the opening one included. */
  skipBlock(): void;
}

function createReader(file: string, tokens: readonly Token[]): Reader {
  let at = 0;
  const fail = (wanted: string): never => {
    const token = tokens[at];
    const place = token === undefined ? "at the end" : `line ${token.line}`;
    const came = token === undefined ? "nothing" : JSON.stringify(token.value.slice(0, 40));
    throw new EnvError(`${file}: KB.logic, ${place}: expected ${wanted}, found ${came}`);
  };
  const is = (value: string): boolean => tokens[at]?.value === value && tokens[at]?.kind !== "text";
  const reader: Reader = {
    atEnd: () => at >= tokens.length,
    take(value) {
      const there = is(value);
      if (there) at++;
      return there;
    },
    expect(value) {
      if (!is(value)) fail(value);
      at++;
    },
    any(kind, what) {
      if (tokens[at]?.kind !== kind) fail(what);
      return tokens[at++]!.value;
    },
    skipBlock() {
      reader.expect("{");
      for (let open = 1; open > 0; at++) {
        if (at >= tokens.length) fail("}");
        if (is("{")) open++;
        else if (is("}")) open--;
      }
    },
  };
  return reader;
}

function readType(reader: Reader, found: Definitions): void {
  reader.expect("type");
  const name = reader.any("name", "the name of a type");
  const parents: string[] = [];
  if (reader.take(":")) {
    do parents.push(reader.any("name", "the name of a parent type"));
    while (reader.take("&") || reader.take(","));
  }
  found.parents.set(name, parents);
  reader.expect("{");
  while (!reader.take("}")) {
    const section = reader.any("name", "a section such as rules, or }");
    if (section === "predicates") readBlock(reader, () => readPredicate(reader, found));
    else if (section === "rules") readBlock(reader, () => readRule(reader, found));
    else if (section === "inform7") readBlock(reader, () => readInform(reader, found));
    else reader.skipBlock();
  }
}

function readBlock(reader: Reader, readEntry: () => void): void {
  reader.expect("{");
  while (!reader.take("}")) readEntry();
}

function readPredicate(reader: Reader, found: Definitions): void {
  const left = readAtom(reader);
  if (reader.take("=")) found.aliases.set(signature(left), { left, right: readAtoms(reader) });
  reader.expect(";");
}

function readRule(reader: Reader, found: Definitions): void {
  const name = reader.any("name", "the name of a rule");
  reader.expect("::");
  const kept: Atom[] = [];
  const before = readAtoms(reader, kept);
  reader.expect("->");
  const after = [...kept, ...readAtoms(reader)];
  reader.expect(";");
  found.rules.set(name, { before, after });
}

/** Atoms joined by &; those after a $ are put into `kept` too. */
function readAtoms(reader: Reader, kept: Atom[] = []): readonly Atom[] {
  const atoms: Atom[] = [];
  do {
    const keep = reader.take("$");
    const atom = readAtom(reader);
    atoms.push(atom);
    if (keep) kept.push(atom);
  } while (reader.take("&"));
  return atoms;
}

function readAtom(reader: Reader): Atom {
  const predicate = reader.any("name", "a predicate");
  const placeholders: Placeholder[] = [];
  reader.expect("(");
  while (!reader.take(")")) {
    if (placeholders.length > 0) reader.expect(",");
    const name = reader.any("name", "a placeholder");
    const type = reader.take(":") ? reader.any("name", "a type") : name.replace(/'+$/, "");
    placeholders.push({ name, type });
  }
  return { predicate, arguments: placeholders };
}

function readInform(reader: Reader, found: Definitions): void {
  const part = reader.any("name", "type, predicates, commands or code");
  if (part === "code") {
    reader.expect("::");
    reader.any("text", "code in quotes");
    reader.expect(";");
  } else if (part === "commands") {
    readBlock(reader, () => {
      const rule = reader.any("name", "the name of a rule");
      reader.expect("::");
      const command = reader.any("text", "a command in quotes");
      reader.expect("::");
      found.commands.set(rule, [command, reader.any("text", "an event in quotes")]);
      reader.expect(";");
    });
  } else reader.skipBlock();
}

function signature(atom: Atom): string {
  return `${atom.predicate}(${atom.arguments.map(({ type }) => type).join()})`;
}

const DEEPEST_ALIAS = 20;

/** An atom in terms of predicates that are no aliases. */
function expand(file: string, found: Definitions, atom: Atom, depth = 0): readonly Atom[] {
  const alias = found.aliases.get(signature(atom));
  if (alias === undefined) return [atom];
  if (depth > DEEPEST_ALIAS)
    throw new EnvError(`${file}: KB.logic: the alias ${signature(atom)} stands for itself`);
  const given = new Map(
    alias.left.arguments.map(({ name }, index) => [name, atom.arguments[index]!]),
  );
  return alias.right.flatMap((right) =>
    expand(
      file,
      found,
      { ...right, arguments: right.arguments.map((one) => given.get(one.name) ?? one) },
      depth + 1,
    ),
  );
}

/** The constants that need no binding: the player and the inventory. */
export const CONSTANTS: readonly string[] = ["P", "I"];

/** The words of a command must be of the rule: what they stand for would be unknown. */
function checkTemplates(file: string, { name, before, after, command, event }: Rule): void {
  const known = new Set(
    [...before, ...after].flatMap((atom) => atom.arguments.map((one) => one.name)),
  );
  const used = [...placeholdersOf(command ?? ""), ...placeholdersOf(event ?? "")];
  const unknown = used.find((one) => !known.has(one) && !CONSTANTS.includes(one));
  if (unknown !== undefined)
    throw new EnvError(
      `${file}: KB.logic: the command of rule ${name} names ${unknown}, which is not in the rule`,
    );
}

/** The placeholders of a template, in order. */
export function placeholdersOf(template: string): readonly string[] {
  return [...template.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1]!);
}

function ancestorsOf(
  parents: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const collect = (type: string, into: Set<string>): Set<string> => {
    if (into.has(type)) return into;
    into.add(type);
    for (const parent of parents.get(type) ?? []) collect(parent, into);
    return into;
  };
  return new Map([...parents.keys()].map((type) => [type, collect(type, new Set())]));
}

/** A token: a name, a text in quotes (without them), or a sign. */
interface Token {
  readonly kind: "name" | "text" | "sign";
  readonly value: string;
  readonly line: number;
}

const TOKEN =
  /(?<space>\s+|#[^\n]*)|"""(?<long>[\s\S]*?)"""|"(?<text>[^"\n]*)"|(?<name>[\w/']+)|(?<sign>::|->|[{}():;,=&|$])/y;

/** Splits a text of the logic language; `file` is named in errors. */
function logicTokens(file: string, text: string): readonly Token[] {
  const tokens: Token[] = [];
  let line = 1;
  for (let at = 0; at < text.length; ) {
    TOKEN.lastIndex = at;
    const groups = TOKEN.exec(text)?.groups;
    if (groups === undefined)
      throw new EnvError(
        `${file}: KB.logic, line ${line}: expected a name, a text in quotes or a sign, found ${JSON.stringify(text.slice(at, at + 20))}`,
      );
    const quoted = groups.long ?? groups.text;
    if (quoted !== undefined) tokens.push({ kind: "text", value: quoted, line });
    else if (groups.name !== undefined) tokens.push({ kind: "name", value: groups.name, line });
    else if (groups.sign !== undefined) tokens.push({ kind: "sign", value: groups.sign, line });
    for (let end = text.indexOf("\n", at); end !== -1 && end < TOKEN.lastIndex; ) {
      line++;
      end = text.indexOf("\n", end + 1);
    }
    at = TOKEN.lastIndex;
  }
  return tokens;
}

/** Facts about a world: immutable, kept by predicate and sorted, as rules look them up. */

/** A fact: a predicate of entities, by their ids. */
export interface Fact {
  readonly predicate: string;
  readonly arguments: readonly string[];
  /** Its text, by which facts are compared. */
  readonly key: string;
}

/** The facts of one moment. */
export type Facts = ReadonlyMap<string, readonly Fact[]>;

/** A fact. */
export function fact(predicate: string, ids: readonly string[]): Fact {
  return { predicate, arguments: ids, key: `${predicate}(${ids.join()})` };
}

function before(left: Fact, right: Fact): boolean {
  for (const [index, id] of left.arguments.entries()) {
    const other = right.arguments[index];
    if (other === undefined || id > other) return false;
    if (id < other) return true;
  }
  return left.arguments.length < right.arguments.length;
}

/** Collects facts. */
export function collectFacts(facts: readonly Fact[]): Facts {
  return changeFacts(new Map(), [], facts);
}

/** Other facts: without some, with others. What does not change is shared. */
export function changeFacts(facts: Facts, removed: readonly Fact[], added: readonly Fact[]): Facts {
  if (removed.length === 0 && added.length === 0) return facts;
  const changed = new Map(facts);
  for (const { predicate, key } of removed) {
    const list = changed.get(predicate);
    if (list !== undefined)
      changed.set(
        predicate,
        list.filter((one) => one.key !== key),
      );
  }
  for (const one of added) {
    const list = changed.get(one.predicate) ?? [];
    if (list.some(({ key }) => key === one.key)) continue;
    const at = list.findIndex((other) => before(one, other));
    changed.set(one.predicate, list.toSpliced(at < 0 ? list.length : at, 0, one));
  }
  return changed;
}
