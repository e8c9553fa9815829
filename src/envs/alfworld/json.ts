/** Finds where broken JSON breaks: the JavaScript engine's messages do not always say. */
import type { EnvError } from "../env.js";
import { fault, lineAt, type Source } from "./source.js";

/** The error for a JSON text that does not parse; `offset` is where it starts in its source. */
export function jsonFault(source: Source, json: string, offset: number, cause: unknown): EnvError {
  const at = Math.min(brokenAt(json), json.length);
  const line = lineAt(source.text, offset + at);
  const error = fault(source, line, `this is not valid JSON: ${reasonAt(json, at)}`);
  error.cause = cause;
  return error;
}

function reasonAt(json: string, at: number): string {
  if (at >= json.length) return "it ends too early";
  return json[at] === '"'
    ? "the text that starts here is not closed, or not written as JSON wants it"
    : `found \`${json[at]}\``;
}

const TOKEN =
  /\s*(?:([{}[\],:])|("(?:[^"\\\n]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y;

/** The offset of the first unexpected token, by a scan with a stack. */
function brokenAt(json: string): number {
  type Expected = "value" | "value or ]" | "key" | "key or }" | ":" | "after";
  const open: ("{" | "[")[] = [];
  let expected: Expected = "value";
  let at = 0;
  for (;;) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(json);
    const previous = at;
    const start = () => previous + json.slice(previous).search(/\S|$/);
    if (token === null || (expected === "after" && open.length === 0)) return start();
    at = TOKEN.lastIndex;
    const mark = token[1];
    const inObject = open.at(-1) === "{";
    if (expected === "value" || expected === "value or ]") {
      if (mark === "{" || mark === "[") {
        open.push(mark);
        expected = mark === "{" ? "key or }" : "value or ]";
        continue;
      }
      if (mark === "]" && expected === "value or ]") open.pop();
      else if (mark !== undefined) return start();
      expected = "after";
    } else if (expected === "key" || expected === "key or }") {
      if (mark === "}" && expected === "key or }") {
        open.pop();
        expected = "after";
      } else if (token[2] !== undefined) {
        expected = ":";
      } else {
        return start();
      }
    } else if (expected === ":") {
      if (mark !== ":") return start();
      expected = "value";
    } else if (mark === ",") {
      expected = inObject ? "key" : "value";
    } else if (mark === (inObject ? "}" : "]")) {
      open.pop();
    } else {
      return start();
    }
  }
}
