import { spend } from "../shell/machine.js";
import type { Call } from "../shell/shell.js";
import { Failure, options, out, readInput } from "./call.js";

const CLASSES = new Map<string, string>();
const span = (from: number, to: number): string =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => String.fromCharCode(from + n)).join(
    "",
  );
CLASSES.set("lower", span(97, 122)).set("upper", span(65, 90)).set("digit", span(48, 57));
CLASSES.set("alpha", span(65, 90) + span(97, 122)).set(
  "alnum",
  span(48, 57) + span(65, 90) + span(97, 122),
);
CLASSES.set("space", "\t\n\v\f\r ")
  .set("blank", "\t ")
  .set("cntrl", `${span(0, 31)}\x7f`);
CLASSES.set("punct", span(33, 47) + span(58, 64) + span(91, 96) + span(123, 126));
CLASSES.set("print", span(32, 126))
  .set("graph", span(33, 126))
  .set("xdigit", span(48, 57) + span(65, 70) + span(97, 102));
export const LETTERS = new Map(
  Object.entries({ n: "\n", t: "\t", r: "\r", "\\": "\\", a: "\x07", b: "\b", f: "\f", v: "\v" }),
);

/** The characters of a set such as `a-z[:digit:]\n`. */
function setOf(text: string, fill: number): string {
  const plain: { character: string; isEscaped: boolean }[] = [];
  let result = "";
  for (let at = 0; at < text.length; at++) {
    const named = /^\[:(\w+):\]/.exec(text.slice(at, at + 12));
    const repeated = /^\[(.)\*(\d*)\]/s.exec(text.slice(at, at + 12));
    let character = text[at]!;
    if (named !== null) {
      const known = CLASSES.get(named[1]!);
      if (known === undefined) throw new Failure(`invalid character class '${named[1]}'`);
      result += known;
      at += named[0].length - 1;
      plain.length = 0;
      continue;
    }
    if (repeated !== null) {
      result += repeated[1]!.repeat(
        repeated[2] === ""
          ? Math.max(0, fill - result.length)
          : Math.min(Number(repeated[2]), 65_536),
      );
      at += repeated[0].length - 1;
      continue;
    }
    if (character === "\\" && at + 1 < text.length) {
      const octal = /^[0-7]{1,3}/.exec(text.slice(at + 1, at + 4))?.[0];
      character =
        octal === undefined
          ? (LETTERS.get(text[at + 1]!) ?? text[at + 1]!)
          : String.fromCharCode(Number.parseInt(octal, 8) & 255);
      at += octal?.length ?? 1;
    }
    if (text[at + 1] === "-" && text[at + 2] !== undefined) {
      let last = text[at + 2]!;
      at += 2;
      if (last === "\\" && text[at + 1] !== undefined) {
        at += 1;
        last = LETTERS.get(text[at]!) ?? text[at]!;
      }
      if (last < character)
        throw new Failure(
          `range-endpoints of '${character}-${last}' are in reverse collating sequence order`,
        );
      result += span(character.charCodeAt(0), last.charCodeAt(0));
    } else result += character;
  }
  return result;
}

export function tr(call: Call): number {
  const given = options(call, "dscCt", {
    delete: "d",
    "squeeze-repeats": "s",
    complement: "c",
    "truncate-set1": "t",
  });
  const [first, second] = given.operands;
  if (first === undefined) throw new Failure("missing operand");
  if (second === undefined && !given.has("d") && !given.has("s"))
    throw new Failure(
      `missing operand after '${first}'\nTwo strings must be given when translating.`,
    );
  let from = setOf(first, 0);
  if (given.has("c") || given.has("C")) {
    const left = new Set(from);
    from = [...span(0, 255)].filter((one) => !left.has(one)).join("");
  }
  let to = second === undefined ? "" : setOf(second, from.length);
  const text = readInput(call);
  const map: (string | undefined)[] = Array.from({ length: 256 });
  if (given.has("d")) for (const one of from) map[one.charCodeAt(0)] = "";
  else if (second !== undefined) {
    if (to === "") throw new Failure("when not truncating set1, string2 must be non-empty");
    if (!given.has("t")) to = to.padEnd(from.length, to.at(-1));
    [...from].forEach((one, n) => {
      if (n < to.length) map[one.charCodeAt(0)] = to[n]!;
    });
  }
  const squeezed = given.has("s") ? new Set(second === undefined ? from : to) : undefined;
  const parts: string[] = [];
  let last = "";
  for (const one of text) {
    const turned = map[one.charCodeAt(0)] ?? one;
    if (squeezed !== undefined && turned === last && squeezed.has(turned)) continue;
    if (turned !== "") last = turned;
    parts.push(turned);
  }
  spend(call.shell.machine, text.length / 16);
  out(call, parts.join(""));
  return 0;
}
