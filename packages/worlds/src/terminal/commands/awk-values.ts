/** The values of `awk`: numbers, texts, and texts that look like numbers and count as both. */
import type { Random } from "@pawl/core/random.js";
import { matcherOf } from "../shell/regex.js";
import type { Call } from "../shell/shell.js";
import type { Stream } from "../shell/streams.js";
import { Failure } from "./call.js";
import { floatText } from "./print.js";

/** Undefined: nothing was assigned yet. */
export type Value = number | string | Numeric | undefined;

/** A text that came in and looks like a number. */
export interface Numeric {
  readonly text: string;
  readonly number: number;
}

/** Leaves a loop, a record, a function or the program. */
export class AwkJump {
  constructor(
    readonly kind: "break" | "continue" | "next" | "nextfile" | "exit" | "return",
    readonly status?: number,
    readonly value?: Value,
  ) {}
}

/** What a running program has. */
export interface Awk {
  readonly call: Call;
  readonly variables: Map<string, Value>;
  readonly arrays: Map<string, Map<string, Value>>;
  fields: string[];
  line: string;
  /** Whether the fields are those of the line. */
  isSplit: boolean;
  readonly outputs: Map<string, { readonly operator: string; text: string }>;
  readonly inputs: Map<string, Stream>;
  random: Random;
  depth: number;
  input: Stream | undefined;
  readonly operands: readonly string[];
  operand: number;
  readonly ranges: Set<number>;
  record?: string;
}

const NUMBER = /^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*$/;

/** A text that came in. */
export function valueFrom(text: string | undefined): Value {
  if (text === undefined) return undefined;
  return NUMBER.test(text) ? { text, number: Number(text) } : text;
}

export function numberOf(value: Value): number {
  if (typeof value === "number") return value;
  if (value === undefined) return 0;
  if (typeof value === "object") return value.number;
  return Number(/^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/.exec(value)?.[0] ?? 0);
}

export function truthOf(value: Value): boolean {
  if (typeof value === "string") return value !== "";
  return numberOf(value) !== 0;
}

/** A number as a text; whole ones have no fraction. */
export function numberText(value: number, format: string): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e16) return String(value === 0 ? 0 : value);
  const found = /^%\.?(\d*)([gfe])$/.exec(format);
  return floatText(found?.[2] ?? "g", value, found === null ? 6 : Number(found[1] || 6));
}

export function textOf(state: Awk, value: Value): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "";
  if (typeof value === "object") return value.text;
  const format = state.variables.get("CONVFMT");
  return numberText(value, typeof format === "string" ? format : "%.6g");
}

/** Makes a text the present line. */
export function setLine(state: Awk, line: string): void {
  state.line = line;
  state.isSplit = false;
}

/** Cuts a text at a separator. */
export function splitText(text: string, separator: string): string[] {
  if (separator === " ") {
    const trimmed = text.replace(/^[ \t\n]+|[ \t\n]+$/g, "");
    return trimmed === "" ? [] : trimmed.split(/[ \t\n]+/);
  }
  if (text === "") return [];
  if (separator === "") return [...text];
  if (separator.length === 1) return text.split(separator);
  const matcher = matcherOf(separator, { extended: true });
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at <= text.length; ) {
    const found = matcher.exec(text, at);
    if (found === null) break;
    if (found[0] === "") {
      at = found.index + 1;
      continue;
    }
    parts.push(text.slice(from, found.index));
    from = found.index + found[0].length;
    at = from;
  }
  return [...parts, text.slice(from)];
}

const MOST_FIELDS = 100_000;

/** Sets a field; -1 only cuts the line into fields. */
export function setField(state: Awk, index: number, text: string): void {
  if (!state.isSplit) {
    state.fields = splitText(state.line, textOf(state, state.variables.get("FS")));
    state.isSplit = true;
    state.variables.set("NF", state.fields.length);
  }
  if (index < 0) return;
  if (index === 0) {
    setLine(state, text);
    return;
  }
  if (index > MOST_FIELDS) throw new Failure(`field ${index} is too many`, 2);
  while (state.fields.length < index) state.fields.push("");
  state.fields[index - 1] = text;
  join(state);
}

function join(state: Awk): void {
  state.variables.set("NF", state.fields.length);
  state.line = state.fields.join(textOf(state, state.variables.get("OFS")));
}

/** Sets a variable; NF makes or drops fields. */
export function setVariable(state: Awk, name: string, value: Value): void {
  if (name !== "NF") {
    state.variables.set(name, value);
    return;
  }
  setField(state, -1, "");
  const count = Math.max(0, Math.trunc(numberOf(value)));
  if (count > MOST_FIELDS) throw new Failure(`field ${count} is too many`, 2);
  while (state.fields.length < count) state.fields.push("");
  state.fields.length = count;
  join(state);
}
