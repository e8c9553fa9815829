/**
 * Translates instructions to JavaScript. Local variables are `l1` and so on, the routine's own part
 * of the stack `s0` and so on; `m` is memory, `t` a value for a moment. What is rare or strange calls
 * `bail`, and the interpreter plays the turn again.
 */
import { type Instruction, NAMES_VARIABLE } from "./instruction.js";
import { OPERATIONS } from "./operations.js";
import type { Story } from "./story.js";

/** What a translation needs to know. */
export interface Context {
  readonly story: Story;
  /** The place of a routine in the table of functions, and how many parameters it has. */
  readonly routine: (packed: number) => { readonly index: number; readonly parameters: number };
  /** JavaScript that goes to an address. */
  readonly goto: (address: number) => string;
  /** How many values are on the stack now; changes as instructions are translated. */
  depth: number;
}

/** JavaScript for an instruction; `context.depth` is updated. */
export function translate(instruction: Instruction, context: Context): string {
  const { op, a, operands, store, branchIf, text } = instruction;
  const named = NAMES_VARIABLE.has(op);
  // The first operand of some is the number of a variable, not a value.
  const values = operands.map((operand, at) => (named && at === 0 ? "" : value(operand, context)));
  const [x = "0", y = "0", z = "0"] = values;
  const set = (code: string): string => assign(store, code, context);
  const branch = (condition: string): string => branchOn(instruction, condition, context);
  switch (op) {
    case "je":
      return branch(
        values
          .slice(1)
          .map((other) => `${x}===${other}`)
          .join("||") || "false",
      );
    case "dec_chk":
    case "inc_chk": {
      const [step, than] = op === "dec_chk" ? ["-1", "<"] : ["+1", ">"];
      const changed = `t=${inPlace(a, context)}${step}&65535;${replace(a, "t", context)}`;
      return `u=${y}<<16;${changed}${branch(`(t<<16)${than}u`)}`;
    }
    case "inc":
    case "dec":
      return replace(a, `${inPlace(a, context)}${op === "inc" ? "+" : "-"}1&65535`, context);
    case "store":
      return replace(a, y, context);
    case "load":
      return set(inPlace(a, context));
    case "push":
      return assign(0, x, context);
    case "pull":
      return replace(a, `s${--context.depth}`, context);
    case "call_1s":
    case "call_2s":
    case "call_vs":
    case "call_vs2":
      return set(call(instruction, values, context));
    case "call_1n":
    case "call_2n":
    case "call_vn":
    case "call_vn2":
      return `${call(instruction, values, context)};`;
    case "check_arg_count":
      return branch(`n>=${x}`);
    case "jump":
      return context.goto(instruction.target);
    case "ret":
      return `return ${x};`;
    case "rtrue":
      return "return 1;";
    case "rfalse":
      return "return 0;";
    case "ret_popped":
      return `return s${--context.depth};`;
    case "print":
      return `print(${JSON.stringify(text)});`;
    case "print_ret":
      return `print(${JSON.stringify(`${text}\n`)});return 1;`;
  }
  const operation = OPERATIONS[op];
  // Reading a line, quitting and the like: the interpreter knows what to do.
  if (operation === undefined) return `bail();${store >= 0 ? set("0") : ""}`;
  if (operation === "all") return "";
  const given: Readonly<Record<string, string>> = { x, y, z, all: `[${values}]` };
  const code = operation.replace(/\b(?:x|y|z|all)\b/g, (name) => given[name]!);
  if (store < 0) return branchIf < 0 ? `${code};` : branch(code);
  return branchIf < 0 ? set(code) : `t=${code};${set("t")}${branch("t!==0")}`;
}

/** Arguments that functions take; a Z-machine's call has no more. */
export const MOST_PARAMETERS = 7;

function value(operand: number, context: Context): string {
  if (operand >= 0) return String(operand);
  const number = ~operand;
  if (number === 0) return `s${--context.depth}`;
  return number < 16 ? `l${number}` : globalAt(number, context);
}

function globalAt(number: number, { story }: Context): string {
  const address = story.globals + 2 * number;
  return `(m[${address}]<<8|m[${address + 1}])`;
}

/** The value of a variable that an instruction names; the stack stays as it is. */
function inPlace(number: number, context: Context): string {
  if (number === 0) return `s${context.depth - 1}`;
  return number < 16 ? `l${number}` : globalAt(number, context);
}

function assign(number: number, code: string, context: Context): string {
  if (number < 0) return `${code};`;
  if (number === 0) return `s${context.depth++}=${code};`;
  return replace(number, code, context);
}

function replace(number: number, code: string, context: Context): string {
  if (number === 0) return `s${context.depth - 1}=${code};`;
  if (number < 16) return `l${number}=${code};`;
  const address = context.story.globals + 2 * number;
  return `v=${code};m[${address}]=v>>8;m[${address + 1}]=v;`;
}

function branchOn({ branchIf, target }: Instruction, condition: string, context: Context): string {
  const go = target < 2 ? `return ${target};` : context.goto(target);
  return branchIf === 1 ? `if(${condition}){${go}}` : `if(!(${condition})){${go}}`;
}

function call({ operands }: Instruction, values: readonly string[], context: Context): string {
  const given = values.slice(1);
  const padded = (count: number): string =>
    [String(given.length), ...Array.from({ length: count }, (_, at) => given[at] ?? "0")].join();
  const packed = operands[0]!;
  if (packed === 0) return "0";
  if (packed < 0) return `call(${values[0]},${padded(MOST_PARAMETERS)})`;
  const { index, parameters } = context.routine(packed);
  return `F[${index}](${padded(parameters)})`;
}
