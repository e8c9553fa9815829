/**
 * Translates instructions to JavaScript. Local variables are `l1` and so on, the routine's own part
 * of the stack `s0` and so on; `m` is memory, `t` a value for a moment. What is rare or strange calls
 * `bail`, and the interpreter plays the turn again.
 */
import type { Instruction } from "./instruction.js";
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
  const { op, a, operands, store, text } = instruction;
  const { story } = context;
  const named = NAMED.has(op);
  // The first operand of some is the number of a variable, not a value.
  const values = operands.map((operand, at) => (named && at === 0 ? "" : value(operand, context)));
  const [x = "", y = "", z = ""] = values;
  const set = (code: string): string => assign(store, code, context);
  const branch = (condition: string): string => branchOn(instruction, condition, context);
  const signed = (code: string): string =>
    /^\d+$/.test(code) ? `${(Number(code) << 16) >> 0}` : `(${code}<<16)`;
  switch (op) {
    case 1:
      return values.length === 1
        ? branch("false")
        : values.length === 2
          ? branch(`${x}===${y}`)
          : `t=${x};${branch(
              values
                .slice(1)
                .map((other) => `t===${other}`)
                .join("||"),
            )}`;
    case 2:
      return branch(`${signed(x)}<${signed(y)}`);
    case 3:
      return branch(`${signed(x)}>${signed(y)}`);
    case 4:
    case 5: {
      const [step, than] = op === 4 ? ["-1", "<"] : ["+1", ">"];
      const changed = `t=${inPlace(a, context)}${step}&65535;${replace(a, "t", context)}`;
      return `u=${signed(y)};${changed}${branch(`(t<<16)${than}u`)}`;
    }
    case 6:
      return branch(`parent(${x})===${y}`);
    case 7:
      return `t=${y};${branch(`(${x}&t)===t`)}`;
    case 8:
      return set(`${x}|${y}`);
    case 9:
      return set(`${x}&${y}`);
    case 10:
      return branch(`has(${x},${y})`);
    case 11:
    case 12:
      return `give(${x},${y},${op === 11});`;
    case 13:
      return replace(a, y, context);
    case 14:
      return `insert(${x},${y});`;
    case 15:
      return `t=${x}+(${y}<<1)&65535;${set("m[t]<<8|m[t+1]")}`;
    case 16:
      return set(`m[${x}+${y}&65535]`);
    case 17:
      return set(`property(${x},${y})`);
    case 18:
      return set(`propertyAddress(${x},${y})`);
    case 19:
      return set(`nextProperty(${x},${y})`);
    case 20:
      return set(`${x}+${y}&65535`);
    case 21:
      return set(`${x}-${y}&65535`);
    case 22:
      return set(`Math.imul(${x},${y})&65535`);
    case 23:
    case 24:
      return `t=${y};if(t===0)bail();${set(`((${signed(x)}>>16)${op === 23 ? "/" : "%"}(t<<16>>16))&65535`)}`;
    case 25:
    case 40:
    case 64:
    case 76:
      return set(call(instruction, values, context));
    case 26:
    case 47:
    case 89:
    case 90:
      return `${call(instruction, values, context)};`;
    case 32:
      return branch(`${x}===0`);
    case 33:
    case 34:
      return `t=${op === 33 ? "sibling" : "child"}(${x});${set("t")}${branch("t!==0")}`;
    case 35:
      return set(`parent(${x})`);
    case 36:
      return set(`propertyLength(${x})`);
    case 37:
    case 38:
      return replace(a, `${inPlace(a, context)}${op === 37 ? "+" : "-"}1&65535`, context);
    case 39:
      return `print(textAt(${x}));`;
    case 41:
      return `remove(${x});`;
    case 42:
      return `print(name(${x}));`;
    case 43:
      return `return ${x};`;
    case 44:
      return context.goto(instruction.target);
    case 45:
      return `print(textAt(${x}*8));`;
    case 46:
      return set(inPlace(a, context));
    case 48:
    case 49:
      return `return ${49 - op};`;
    case 50:
      return `print(${JSON.stringify(text)});`;
    case 51:
      return `print(${JSON.stringify(`${text}\n`)});return 1;`;
    case 56:
      return `return s${--context.depth};`;
    case 59:
      return 'print("\\n");';
    case 61:
    case 63:
      return branch("true");
    case 65:
      return `t=${x}+(${y}<<1)&65535;if(t+1>=${story.staticMark})bail();u=${z};m[t]=u>>8;m[t+1]=u;`;
    case 66:
      return `t=${x}+${y}&65535;if(t>=${story.staticMark})bail();m[t]=${z};`;
    case 67:
      return `setProperty(${x},${y},${z});`;
    case 69:
      return `printCode(${x});`;
    case 70:
      return `print(String(${signed(x)}>>16));`;
    case 71:
      return set(`random(${x})`);
    case 72:
      return assign(0, x, context);
    case 73:
      return replace(a, `s${--context.depth}`, context);
    case 83:
      return `selectStream(${x},${y || 0});`;
    case 87:
      return `t=scanTable([${values}]);${set("t")}${branch("t!==0")}`;
    case 88:
      return set(`~${x}&65535`);
    case 91:
    case 92:
    case 93:
    case 94:
      return `${TABLES[op - 91]}([${values}]);`;
    case 95:
      return branch(`n>=${x}`);
    case 98:
    case 99: {
      const number = op === 98 ? x : `(${signed(x)}>>16)`;
      return `t=${signed(y)}>>16;${set(`(t<0?${number}>>-t:${number}<<t)&65535`)}`;
    }
    case 96:
    case 97:
    case 100:
    case 106:
      return set("0");
    case 105:
      return set("65535");
    case 107:
      return `print(String.fromCharCode(${x}));`;
    case 52:
    case 60:
    case 27:
    case 74:
    case 75:
    case 77:
    case 78:
    case 79:
    case 81:
    case 82:
    case 84:
    case 85:
      return "";
    default:
      // Reading a line, quitting and the like: the interpreter knows what to do.
      return `bail();${store >= 0 ? set("0") : ""}`;
  }
}

const NAMED: ReadonlySet<number> = new Set([4, 5, 13, 37, 38, 46, 73]);
const TABLES = ["tokeniseAs", "encodeText", "copyTable", "printTable"];
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
