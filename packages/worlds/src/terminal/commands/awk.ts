/** `awk`. */
import { spend } from "../shell/machine.js";
import type { Call } from "../shell/shell.js";
import { arrayOf, assign, type Context, evaluate, keyOf } from "./awk-evaluate.js";
import { closeAll, openOutput } from "./awk-files.js";
import { formatAwk } from "./awk-functions.js";
import { parseAwk } from "./awk-parser.js";
import { assignText, escaped, nextRecord } from "./awk-records.js";
import type { AwkProgram, Expression, Statement } from "./awk-syntax.js";
import {
  type Awk,
  AwkJump,
  numberOf,
  numberText,
  textOf,
  truthOf,
  type Value,
  valueFrom,
} from "./awk-values.js";
import { Failure, options, out, readNamed } from "./call.js";

export function awk(call: Call): number {
  const at = call.args.findIndex(
    (one, n) => !/^-./.test(one) && !/^-[Fvf]$/.test(call.args[n - 1] ?? ""),
  );
  const end = at < 0 ? call.args.length : at;
  const given = options(
    { ...call, args: call.args.slice(0, end) },
    "F:v:f:",
    { "field-separator": "F", assign: "v", file: "f" },
    2,
  );
  const operands = [...call.args.slice(end)];
  const texts = given.values("f").map((name) => readNamed(call, name));
  if (texts.length === 0) {
    const program = operands.shift();
    if (program === undefined)
      throw new Failure("usage: awk [-F fs][-v var=value][prog | -f progfile][file ...]", 2);
    texts.push(program);
  }
  const program = parseAwk(texts.join("\n"));
  const state: Awk = {
    call,
    variables: new Map<string, Value>([
      ["FS", " "],
      ["OFS", " "],
      ["ORS", "\n"],
      ["RS", "\n"],
      ["NR", 0],
      ["FNR", 0],
      ["NF", 0],
      ["SUBSEP", "\x1c"],
      ["CONVFMT", "%.6g"],
      ["OFMT", "%.6g"],
      ["RSTART", 0],
      ["RLENGTH", -1],
      ["FILENAME", ""],
      ["ARGC", operands.length + 1],
    ]),
    arrays: new Map(),
    fields: [],
    line: "",
    isSplit: true,
    outputs: new Map(),
    inputs: new Map(),
    random: call.shell.machine.random,
    depth: 0,
    input: undefined,
    operands,
    operand: 0,
    ranges: new Set(),
  };
  state.arrays.set(
    "ARGV",
    new Map<string, Value>(["awk", ...operands].map((one, n) => [String(n), one])),
  );
  state.arrays.set(
    "ENVIRON",
    new Map(
      [...call.shell.variables].flatMap(([name, { value, exported }]) =>
        exported && value !== undefined ? [[name, valueFrom(value)] as const] : [],
      ),
    ),
  );
  const separator = given.value("F");
  if (separator !== undefined)
    state.variables.set("FS", separator === "t" ? "\t" : escaped(separator));
  for (const one of given.values("v")) assignText(state, one);
  return runProgram(state, program);
}

function runProgram(state: Awk, program: AwkProgram): number {
  let status = 0;
  const part = (run: () => void): boolean => {
    try {
      run();
      return true;
    } catch (error) {
      if (!(error instanceof AwkJump) || error.kind !== "exit") throw error;
      status = error.status ?? status;
      return false;
    }
  };
  const context: Context = { state, program, run, locals: undefined };
  let goesOn = part(() => {
    for (const statement of program.begin) run(context, statement);
  });
  if (goesOn && (program.rules.length > 0 || program.end.length > 0))
    goesOn = part(() => {
      while (nextRecord(state)) runRules(context);
    });
  part(() => {
    for (const statement of program.end) run(context, statement);
  });
  closeAll(state);
  return status;
}

function runRules(context: Context): void {
  const { state, program } = context;
  try {
    program.rules.forEach((rule, n) => {
      spend(state.call.shell.machine, 0.5);
      const { from, to, body } = rule;
      if (from !== undefined && to === undefined && !truthOf(evaluate(context, from))) return;
      if (to !== undefined) {
        if (!state.ranges.has(n) && !truthOf(evaluate(context, from!))) return;
        state.ranges.add(n);
        if (truthOf(evaluate(context, to))) state.ranges.delete(n);
      }
      if (body === undefined) print(context, [], undefined, undefined);
      else run(context, body);
    });
  } catch (error) {
    if (!(error instanceof AwkJump)) throw error;
    if (error.kind === "nextfile") state.input = undefined;
    else if (error.kind !== "next") throw error;
  }
}

function run(context: Context, statement: Statement): void {
  const { state } = context;
  spend(state.call.shell.machine, 0.4);
  switch (statement.type) {
    case "expression":
      evaluate(context, statement.value);
      break;
    case "print":
      if (statement.format) {
        const [format, ...args] = statement.args.map((one) => evaluate(context, one));
        write(
          context,
          formatAwk(state, textOf(state, format ?? ""), args),
          statement.operator,
          statement.to,
        );
      } else print(context, statement.args, statement.operator, statement.to);
      break;
    case "block":
      for (const one of statement.body) run(context, one);
      break;
    case "if":
      if (truthOf(evaluate(context, statement.condition))) run(context, statement.yes);
      else if (statement.no !== undefined) run(context, statement.no);
      break;
    case "while": {
      let isFirst = statement.first;
      while (isFirst || truthOf(evaluate(context, statement.condition))) {
        isFirst = false;
        if (!loopBody(context, statement.body)) break;
      }
      break;
    }
    case "for":
      if (statement.start !== undefined) run(context, statement.start);
      while (statement.condition === undefined || truthOf(evaluate(context, statement.condition))) {
        if (!loopBody(context, statement.body)) break;
        if (statement.step !== undefined) run(context, statement.step);
      }
      break;
    case "each":
      for (const key of [...arrayOf(context, statement.array).keys()]) {
        assign(context, { type: "variable", name: statement.name }, valueFrom(key));
        if (!loopBody(context, statement.body)) break;
      }
      break;
    case "jump":
      throw new AwkJump(statement.kind);
    case "exit":
      throw new AwkJump(
        "exit",
        statement.value && numberOf(evaluate(context, statement.value)) & 255,
      );
    case "return":
      throw new AwkJump("return", undefined, statement.value && evaluate(context, statement.value));
    case "delete": {
      const array = arrayOf(context, statement.name);
      if (statement.indices === undefined) array.clear();
      else array.delete(keyOf(context, statement.indices));
      break;
    }
  }
}

/** Runs a loop's body; false: the loop is left. */
function loopBody(context: Context, body: Statement): boolean {
  spend(context.state.call.shell.machine, 0.4);
  try {
    run(context, body);
  } catch (error) {
    if (!(error instanceof AwkJump)) throw error;
    if (error.kind === "break") return false;
    if (error.kind !== "continue") throw error;
  }
  return true;
}

function print(
  context: Context,
  args: readonly Expression[],
  operator: string | undefined,
  to: Expression | undefined,
): void {
  const { state } = context;
  const values =
    args.length === 0 ? [state.line] : args.map((one) => shown(state, evaluate(context, one)));
  write(
    context,
    values.join(textOf(state, state.variables.get("OFS")!)) +
      textOf(state, state.variables.get("ORS")!),
    operator,
    to,
  );
}

/** A value as `print` writes it. */
const shown = (state: Awk, value: Value): string =>
  typeof value === "number"
    ? numberText(value, textOf(state, state.variables.get("OFMT")!))
    : textOf(state, value);

function write(
  context: Context,
  text: string,
  operator: string | undefined,
  to: Expression | undefined,
): void {
  if (operator === undefined) out(context.state.call, text);
  else openOutput(context.state, operator, textOf(context.state, evaluate(context, to!)), text);
}
