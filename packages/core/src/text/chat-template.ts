/**
 * Chat templates, rendered within limits: a template comes with a downloaded model, and is a
 * program. It reaches nothing but what it is given, and can neither run for ever nor take all memory.
 *
 * Every expression and statement passes through the interpreter's `evaluate`, so that is where steps
 * are counted and values measured. What a built-in could blow up before it returns (`range`, a long
 * separator, an indentation) is measured before it runs.
 */
import { Environment, Interpreter, Template } from "@huggingface/jinja";
import { withinTime } from "../processes/time-limit.js";

/** The sizes of values in a chat template. */

/** A value of the template's interpreter. */
interface TemplateValue {
  readonly type: string;
  readonly value: unknown;
}

/** The size of a value. */
interface TemplateSize {
  /** Characters of a text, or of everything in a list, each time that it is there. */
  readonly characters: number;
  /** Lists or objects inside each other. */
  readonly nesting: number;
  /** What the list or object takes besides its items. */
  readonly own: number;
  /** Whether it stays the same: a namespace can be assigned to. */
  readonly fixed: boolean;
}

const ITEM = 16;
const plain: TemplateSize = { characters: 1, nesting: 0, own: 0, fixed: true };

/**
 * Measures values, and remembers those that cannot change. A list that holds another twice is
 * counted as twice as large, as it is when it is written out; `tooLarge` is thrown as soon as a
 * limit is passed.
 */
function templateSizes(
  limits: { readonly characters: number; readonly nesting: number },
  tooLarge: (what: "characters" | "nesting") => Error,
): (value: TemplateValue) => TemplateSize {
  const known = new WeakMap<TemplateValue, TemplateSize>();
  const measure = (value: TemplateValue, level: number): TemplateSize => {
    const inside = value.value;
    if (typeof inside === "string") {
      if (inside.length > limits.characters) throw tooLarge("characters");
      return { characters: inside.length, nesting: 0, own: inside.length, fixed: true };
    }
    if (!Array.isArray(inside) && !(inside instanceof Map)) return plain;
    const before = known.get(value);
    if (before !== undefined) {
      if (before.nesting + level > limits.nesting) throw tooLarge("nesting");
      return before;
    }
    if (level >= limits.nesting) throw tooLarge("nesting");
    let [characters, nesting, own, fixed] = [1, 0, 1, value.type !== "NamespaceValue"];
    const add = (item: TemplateValue | undefined, key = ""): void => {
      const size = item === undefined ? plain : measure(item, level + 1);
      characters += ITEM + key.length + size.characters;
      own += ITEM + key.length;
      nesting = Math.max(nesting, size.nesting);
      fixed &&= size.fixed;
      if (characters > limits.characters) throw tooLarge("characters");
    };
    if (Array.isArray(inside)) for (const item of inside as TemplateValue[]) add(item);
    else for (const [key, item] of inside as Map<string, TemplateValue>) add(item, key);
    const size = { characters, nesting: nesting + 1, own, fixed };
    // Made a moment ago, it counts; met again, it does not.
    if (fixed) known.set(value, { ...size, own: 0 });
    return size;
  };
  return (value) => measure(value, 0);
}

/** What a template may take. */
const TEMPLATE_LIMITS = {
  /** Characters of the template itself. */
  source: 2 ** 18,
  /** Numbers of a range, as in jinja2's sandbox. */
  range: 100_000,
  /** Expressions and statements evaluated. */
  steps: 2_000_000,
  /** Expressions inside each other, calls of macros included. */
  depth: 400,
  /** Characters of a text, or of everything in a list. */
  characters: 4_000_000,
  /** Lists inside lists. */
  nesting: 100,
  /** Characters of all texts and lists that are made on the way. */
  made: 128_000_000,
  /** Characters of a value, times those of the arguments of what is applied to it. */
  product: 100_000_000,
  seconds: 5,
} as const;

/** A template that was parsed. */
export interface ChatTemplate {
  render(variables: Readonly<Record<string, unknown>>): string;
}

/** Parses a template; one beyond a limit throws an `Error` that names it. */
export function parseChatTemplate(source: string): ChatTemplate {
  if (source.length > TEMPLATE_LIMITS.source)
    throw beyond("source", `it has ${source.length} characters`);
  const { parsed } = withinTime(
    TEMPLATE_LIMITS.seconds * 1000,
    () => new Template(source),
    () => beyond("seconds", "it takes too long to parse"),
  );
  return {
    render: (variables) => {
      const scope = globals();
      for (const [name, value] of Object.entries(variables)) scope.set(name, value);
      return String(limited(new Interpreter(scope as never)).run(parsed).value);
    },
  };
}

function beyond(limit: keyof typeof TEMPLATE_LIMITS, what: string): Error {
  return new Error(
    `${what}; a template may take ${TEMPLATE_LIMITS[limit].toLocaleString("en-US")} (${limit}). Templates of chat models stay far below: do not use this one`,
  );
}

/** The library's global names, with a `range` that has an end. */
function globals(): Scope {
  const scope: Scope = new Environment();
  for (const [name, value] of [
    ["false", false],
    ["true", true],
    ["none", null],
  ] as const) {
    scope.set(name, value);
    scope.set(name[0]!.toUpperCase() + name.slice(1), value);
  }
  scope.set("raise_exception", (message: unknown) => {
    throw new Error(String(message).slice(0, 1000));
  });
  scope.set("range", range);
  scope.set("strftime_now", strftimeNow);
  return scope;
}

function range(...given: readonly unknown[]): readonly number[] {
  if (given.length === 0 || given.length > 3 || !given.every(Number.isFinite))
    throw new Error("range() takes one to three numbers");
  const numbers = given as readonly number[];
  const [start, stop] = numbers.length === 1 ? [0, numbers[0]!] : [numbers[0]!, numbers[1]!];
  const step = numbers[2] ?? 1;
  if (step === 0) throw new Error("range() step must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > TEMPLATE_LIMITS.range) throw beyond("range", `range() of ${length} numbers`);
  return Array.from({ length }, (_, i) => start + i * step);
}

type LibraryFunction = (args: readonly { readonly value: unknown }[]) => TemplateValue;
let libraryStrftime: LibraryFunction | undefined;

/** The library's own, which it does not export but gives to templates. */
function strftimeNow(format: unknown): string {
  if (libraryStrftime === undefined)
    new Template("{{ take(strftime_now) }}").render({
      take: (given: LibraryFunction) => {
        libraryStrftime = given;
      },
    });
  return String(libraryStrftime!([{ value: String(format) }]).value);
}

// The package's types of these cannot be resolved with our settings.
interface Node {
  readonly type: string;
}
interface Scope {
  set(name: string, value: unknown): void;
}
interface Evaluator {
  evaluate(node: Node | undefined, scope: Scope): TemplateValue;
  run(program: Node): TemplateValue;
}

/** The fields of nodes that matter here; which of them are there depends on the type. */
interface Parts {
  readonly left: Node;
  readonly right: Node;
  readonly operator: { readonly value: string };
  readonly operand: Node;
  readonly body: readonly Node[];
  readonly filter: { readonly callee?: { readonly value: string }; readonly args: readonly Node[] };
  readonly object: Node;
  readonly property: Node & { readonly value?: unknown };
  readonly computed: boolean;
  readonly value: Node;
  readonly argument: Node;
}
const partsOf = (node: Node): Parts => node as unknown as Parts;
const nodeOf = (parts: { readonly type: string } & Partial<Parts>): Node => parts;

/** A node that has been evaluated: its value takes the place of the expression. */
const HELD = "Held";
const held = (value: TemplateValue): Node => ({ type: HELD, value }) as Node;

/** Filters and methods whose result, or time, can be as large as operand times arguments. */
const MULTIPLYING = new Set<unknown>(["join", "indent", "replace", "tojson", "sort", "map"]);
const MULTIPLYING_METHODS = new Set<unknown>(["replace", "split"]);
/** Nodes whose value was there before, unless they cut a piece out of it. */
const GIVEN = new Set(["Identifier", "StringLiteral", "MemberExpression"]);

const isText = (value: TemplateValue): boolean => value.type === "StringValue";

/** The interpreter, with everything that it evaluates counted and measured. */
function limited(interpreter: Evaluator): Evaluator {
  const library = interpreter.evaluate.bind(interpreter);
  const start = performance.now();
  let steps = 0;
  let depth = 0;
  let made = 0;
  const sizeOf = templateSizes(TEMPLATE_LIMITS, (limit) =>
    limit === "nesting"
      ? beyond(limit, "it puts lists or objects inside each other too deeply")
      : beyond(limit, "it makes too long a text or list"),
  );

  const checkTime = (): void => {
    if (performance.now() - start > TEMPLATE_LIMITS.seconds * 1000)
      throw beyond("seconds", "it takes too long to render");
  };
  const checkProduct = (name: string, value: TemplateValue, args: readonly TemplateValue[]) => {
    const { characters, nesting } = sizeOf(value);
    let given = 1;
    for (const one of args)
      given += typeof one.value === "number" ? Math.abs(one.value) : sizeOf(one).characters;
    // JSON is indented once for every level.
    if (characters * given * (name === "tojson" ? nesting + 1 : 1) > TEMPLATE_LIMITS.product)
      throw beyond("product", `${name} of ${characters} characters with ${given} in its arguments`);
    checkTime();
  };

  const filter = (node: Node, name: string, scope: Scope): TemplateValue => {
    const { operand, body, filter: given } = partsOf(node);
    const values: TemplateValue[] = [];
    const hold = (part: Node): Node => {
      const value = interpreter.evaluate(part, scope);
      values.push(value);
      return held(value);
    };
    const whole = hold(
      node.type === "FilterStatement" ? nodeOf({ type: "Program", body }) : operand,
    );
    const args = given.args.map((one): Node => {
      const { value, argument } = partsOf(one);
      if (one.type === "KeywordArgumentExpression") return { ...one, value: hold(value) } as Node;
      return one.type.endsWith("SpreadExpression")
        ? ({ ...one, argument: hold(argument) } as Node)
        : hold(one);
    });
    checkProduct(name, values[0]!, values.slice(1));
    const type = "FilterExpression";
    return library(nodeOf({ type, operand: whole, filter: { ...given, args } }), scope);
  };

  /** `in` may look for a text in another. */
  const search = (node: Node, scope: Scope): TemplateValue => {
    const { left, right, operator } = partsOf(node);
    const one = interpreter.evaluate(left, scope);
    const all = interpreter.evaluate(right, scope);
    if (isText(one) && isText(all)) checkProduct(operator.value, all, [one]);
    return library(nodeOf({ type: node.type, operator, left: held(one), right: held(all) }), scope);
  };

  /** A method of a text measures its arguments before it runs. */
  const method = (node: Node, scope: Scope): TemplateValue => {
    const { object, property, computed } = partsOf(node);
    const text = interpreter.evaluate(object, scope);
    const { type } = node;
    const found = library(nodeOf({ type, object: held(text), property, computed }), scope);
    if (!isText(text) || found.type !== "FunctionValue") return found;
    type Call = (args: TemplateValue[], scope: Scope) => TemplateValue;
    const call = found.value as Call;
    const FunctionValue = found.constructor as new (call: Call) => TemplateValue;
    return new FunctionValue((args, scope) => {
      checkProduct("a method of a text", text, args);
      return call(args, scope);
    });
  };

  const evaluate = (node: Node, scope: Scope): TemplateValue => {
    const parts = partsOf(node);
    switch (node.type) {
      case "MemberExpression":
        return (
          parts.computed
            ? parts.property.type !== "SliceExpression"
            : MULTIPLYING_METHODS.has(parts.property.value)
        )
          ? method(node, scope)
          : library(node, scope);
      case "BinaryExpression":
        return parts.operator.value === "in" || parts.operator.value === "not in"
          ? search(node, scope)
          : library(node, scope);
      case "FilterExpression":
      case "FilterStatement": {
        const name = parts.filter.callee?.value;
        return name !== undefined && MULTIPLYING.has(name)
          ? filter(node, name, scope)
          : library(node, scope);
      }
      default:
        return library(node, scope);
    }
  };

  interpreter.evaluate = (node, scope) => {
    if (node === undefined) return library(node, scope);
    if (node.type === HELD) return partsOf(node).value as unknown as TemplateValue;
    if (++steps > TEMPLATE_LIMITS.steps) throw beyond("steps", "it takes too many steps");
    if (steps % 128 === 0) checkTime();
    if (++depth > TEMPLATE_LIMITS.depth)
      throw beyond("depth", "its expressions or macros are too deep inside each other");
    let value: TemplateValue;
    try {
      value = evaluate(node, scope);
    } finally {
      // `break` and `continue` are thrown, too.
      depth--;
    }
    // A filter such as `first` gives nothing for an empty list.
    if (value === undefined) return value;
    const { characters, own } = sizeOf(value);
    if (characters > 10_000) checkTime();
    if (!GIVEN.has(node.type) || partsOf(node).property?.type === "SliceExpression") made += own;
    if (made > TEMPLATE_LIMITS.made) throw beyond("made", "it makes too many texts or lists");
    return value;
  };
  return interpreter;
}
