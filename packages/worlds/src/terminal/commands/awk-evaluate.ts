import { type Matcher, matcherOf } from "../shell/regex.js";
import { closeAll, readFrom } from "./awk-files.js";
import { builtinAwk } from "./awk-functions.js";
import { nextRecord } from "./awk-records.js";
import type { AwkFunction, AwkProgram, Expression, Statement } from "./awk-syntax.js";
import {
  type Awk,
  AwkJump,
  numberOf,
  setField,
  setLine,
  setVariable,
  textOf,
  truthOf,
  type Value,
  valueFrom,
} from "./awk-values.js";
import { Failure, readNamed } from "./call.js";

export interface Context {
  readonly state: Awk;
  readonly program: AwkProgram;
  /** Carries out a statement, for functions. */
  readonly run: (context: Context, statement: Statement) => void;
  /** The parameters of the function that runs: values, or names of arrays. */
  readonly locals: Map<string, Local> | undefined;
}

type Local = { value: Value; array: Map<string, Value> | undefined };

export function arrayOf({ state, locals }: Context, name: string): Map<string, Value> {
  const local = locals?.get(name);
  if (local !== undefined) {
    local.array ??= new Map();
    return local.array;
  }
  let array = state.arrays.get(name);
  if (array === undefined) {
    array = new Map();
    state.arrays.set(name, array);
  }
  return array;
}

export function keyOf(context: Context, indices: readonly Expression[]): string {
  return indices
    .map((one) => textOf(context.state, evaluate(context, one)))
    .join(indices.length > 1 ? textOf(context.state, context.state.variables.get("SUBSEP")!) : "");
}

const MOST_ELEMENTS = 200_000;

export function assign(context: Context, target: Expression, value: Value): void {
  const { state, locals } = context;
  if (target.type === "group") assign(context, target.inside, value);
  else if (target.type === "variable") {
    const local = locals?.get(target.name);
    if (local !== undefined) local.value = value;
    else setVariable(state, target.name, value);
  } else if (target.type === "field")
    setField(state, numberOf(evaluate(context, target.index)), textOf(state, value));
  else if (target.type === "element") {
    const array = arrayOf(context, target.name);
    if (array.size > MOST_ELEMENTS) throw new Failure("an array has too many elements", 2);
    array.set(keyOf(context, target.indices), value);
  } else throw new Failure("syntax error: assignment to what is no variable", 2);
}

function matcher(state: Awk, source: string): Matcher {
  try {
    return matcherOf(source, { extended: true });
  } catch (error) {
    throw new Failure(
      `regular expression compile failed (${(error as Error).message})\n${textOf(state, source)}`,
      2,
    );
  }
}

export function evaluate(context: Context, expression: Expression): Value {
  const { state } = context;
  switch (expression.type) {
    case "number":
    case "string":
      return expression.value;
    case "group":
      return evaluate(context, expression.inside);
    case "regex":
      return matcher(state, expression.source).test(state.line) ? 1 : 0;
    case "variable": {
      const local = context.locals?.get(expression.name);
      if (local !== undefined) return local.value;
      if (expression.name === "NF") setField(state, -1, "");
      return state.variables.get(expression.name) ?? undefined;
    }
    case "field": {
      const index = numberOf(evaluate(context, expression.index));
      if (index < 0) throw new Failure(`negative field index $${index}`, 2);
      if (index === 0) return valueFrom(state.line);
      setField(state, -1, "");
      return valueFrom(state.fields[Math.trunc(index) - 1] ?? undefined);
    }
    case "element": {
      const array = arrayOf(context, expression.name);
      const key = keyOf(context, expression.indices);
      if (!array.has(key)) {
        if (array.size > MOST_ELEMENTS) throw new Failure("an array has too many elements", 2);
        array.set(key, undefined);
      }
      return array.get(key);
    }
    case "assign": {
      const right = evaluate(context, expression.value);
      const value =
        expression.operator === "="
          ? right
          : calculate(
              expression.operator[0]!,
              numberOf(evaluate(context, expression.target)),
              numberOf(right),
            );
      assign(context, expression.target, value);
      return value;
    }
    case "choice":
      return evaluate(
        context,
        truthOf(evaluate(context, expression.condition)) ? expression.yes : expression.no,
      );
    case "unary": {
      const value = evaluate(context, expression.operand);
      if (expression.operator === "!") return truthOf(value) ? 0 : 1;
      return expression.operator === "-" ? -numberOf(value) : numberOf(value);
    }
    case "step": {
      const old = numberOf(evaluate(context, expression.target));
      assign(context, expression.target, old + expression.by);
      return expression.before ? old + expression.by : old;
    }
    case "in":
      return arrayOf(context, expression.name).has(keyOf(context, expression.indices)) ? 1 : 0;
    case "binary":
      return binary(context, expression);
    case "call":
      return callFunction(context, expression.name, expression.args);
    case "getline":
      return getline(context, expression);
  }
}

function calculate(operator: string, a: number, b: number): number {
  if ((operator === "/" || operator === "%") && b === 0)
    throw new Failure(operator === "/" ? "division by zero" : "division by zero in %", 2);
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "%":
      return a % b;
    default:
      return a ** b;
  }
}

function binary(
  context: Context,
  { operator, left, right }: Expression & { type: "binary" },
): Value {
  const { state } = context;
  const a = evaluate(context, left);
  if (operator === "&&") return truthOf(a) && truthOf(evaluate(context, right)) ? 1 : 0;
  if (operator === "||") return truthOf(a) || truthOf(evaluate(context, right)) ? 1 : 0;
  if (operator === "~" || operator === "!~") {
    const source = right.type === "regex" ? right.source : textOf(state, evaluate(context, right));
    return matcher(state, source).test(textOf(state, a)) === (operator === "~") ? 1 : 0;
  }
  const b = evaluate(context, right);
  if (operator === " ") {
    const text = textOf(state, a) + textOf(state, b);
    if (text.length > 2 ** 20) throw new Failure("a string is too long", 2);
    return text;
  }
  if (/^[<>=!]/.test(operator)) {
    const isText = typeof a === "string" || typeof b === "string";
    const [x, y] = isText ? [textOf(state, a), textOf(state, b)] : [numberOf(a), numberOf(b)];
    const order = x < y ? -1 : x > y ? 1 : 0;
    const holds = {
      "<": order < 0,
      "<=": order <= 0,
      "==": order === 0,
      "!=": order !== 0,
      ">": order > 0,
      ">=": order >= 0,
    }[operator];
    return holds ? 1 : 0;
  }
  return calculate(operator, numberOf(a), numberOf(b));
}

function getline(
  context: Context,
  { kind, from, target }: Expression & { type: "getline" },
): Value {
  const { state } = context;
  let record: string | undefined;
  if (kind === "main") {
    if (!nextRecord(state, true)) return 0;
    record = state.record!;
  } else {
    const name = textOf(state, evaluate(context, from!));
    let stream = state.inputs.get(name);
    if (stream === undefined)
      try {
        const text = kind === "file" ? readNamed(state.call, name) : outputOf(state, name);
        stream = { kind: "text", text, position: 0 };
        state.inputs.set(name, stream);
      } catch {
        return -1;
      }
    record = readFrom(state, stream);
    if (record === undefined) return 0;
    if (kind === "command") state.variables.set("NR", numberOf(state.variables.get("NR")!) + 1);
  }
  if (target === undefined) setLine(state, record);
  else assign(context, target, valueFrom(record));
  return 1;
}

function outputOf({ call }: Awk, command: string): string {
  const { shell } = call;
  const { streams } = shell;
  const stream = { kind: "output" as const, text: "", limit: 2 ** 20, isPipe: true };
  shell.streams = new Map(streams).set(1, stream);
  try {
    shell.runner.execute(shell, ["sh", "-c", command]);
  } finally {
    shell.streams = streams;
  }
  return stream.text;
}

function callFunction(context: Context, name: string, args: readonly Expression[]): Value {
  const own = context.program.functions.get(name);
  if (own !== undefined) return callOwn(context, own, args);
  const { state } = context;
  const array = (expression: Expression | undefined): Map<string, Value> => {
    if (expression?.type !== "variable")
      throw new Failure(`${name}: expected the name of an array`, 2);
    return arrayOf(context, expression.name);
  };
  return builtinAwk(state, name, {
    count: args.length,
    value: (n) => (args[n] === undefined ? undefined : evaluate(context, args[n])),
    isArray: (n) =>
      args[n]?.type === "variable" &&
      (context.locals?.get(args[n].name)?.array !== undefined ||
        (context.locals?.get(args[n].name) === undefined && state.arrays.has(args[n].name))),
    array: (n) => array(args[n]),
    pattern: (n) => {
      const arg = args[n];
      return matcher(
        state,
        arg?.type === "regex"
          ? arg.source
          : textOf(state, arg === undefined ? "" : evaluate(context, arg)),
      );
    },
    assign: (n, value) =>
      assign(context, args[n] ?? { type: "field", index: { type: "number", value: 0 } }, value),
    run: (command) => {
      closeAll(state);
      return state.call.shell.runner.execute(state.call.shell, ["sh", "-c", command]);
    },
  });
}

function callOwn(
  context: Context,
  { parameters, body }: AwkFunction,
  args: readonly Expression[],
): Value {
  const { state, program, run } = context;
  if (state.depth > 200) throw new Failure("function calls are nested too deeply", 2);
  const locals = new Map(
    parameters.map((name, n): [string, Local] => {
      const arg = args[n];
      if (arg?.type === "variable") {
        const outer = context.locals?.get(arg.name);
        const known = outer === undefined ? state.variables.get(arg.name) : outer.value;
        // What has no value yet may turn out to be an array.
        if (known === undefined)
          return [name, { value: undefined, array: arrayOf(context, arg.name) }];
        return [name, { value: known, array: undefined }];
      }
      return [
        name,
        { value: arg === undefined ? undefined : evaluate(context, arg), array: undefined },
      ];
    }),
  );
  state.depth += 1;
  try {
    run({ state, program, run, locals }, body);
    return undefined;
  } catch (error) {
    if (!(error instanceof AwkJump) || error.kind !== "return") throw error;
    return error.value;
  } finally {
    state.depth -= 1;
  }
}
