import { nothing } from "../shell/streams.js";
import { readFrom } from "./awk-files.js";
import { type Awk, numberOf, setLine, setVariable, valueFrom } from "./awk-values.js";
import { Failure, readNamed } from "./call.js";

export const escaped = (text: string): string =>
  text.replace(/\\([ntr\\])/g, (_, one: string) => ({ n: "\n", t: "\t", r: "\r" })[one] ?? "\\");

export function assignText(state: Awk, text: string): void {
  const at = text.indexOf("=");
  setVariable(state, text.slice(0, at), valueFrom(escaped(text.slice(at + 1))));
}

/** Reads the next record of the files or the input. */
export function nextRecord(state: Awk, isAlone = false): boolean {
  for (;;) {
    if (state.input === undefined) {
      const operand = state.operands[state.operand];
      if (operand === undefined) {
        if (state.operand > 0 && state.operands.some((one) => !/^[A-Za-z_]\w*=/.test(one)))
          return false;
        if (state.operand > state.operands.length) return false;
        state.operand = state.operands.length + 1;
        state.input = state.call.shell.streams.get(0) ?? nothing;
      } else {
        state.operand += 1;
        if (/^[A-Za-z_]\w*=/.test(operand)) {
          assignText(state, operand);
          continue;
        }
        state.variables.set("FILENAME", operand);
        state.variables.set("FNR", 0);
        if (operand === "-") state.input = state.call.shell.streams.get(0) ?? nothing;
        else
          try {
            state.input = { kind: "text", text: readNamed(state.call, operand), position: 0 };
          } catch (error) {
            throw new Failure(`cannot open "${operand}" (${(error as Error).message})`, 2);
          }
      }
    }
    const record = readFrom(state, state.input);
    if (record === undefined) {
      state.input = undefined;
      if (state.operand > state.operands.length) return false;
      continue;
    }
    state.variables.set("NR", numberOf(state.variables.get("NR")!) + 1);
    state.variables.set("FNR", numberOf(state.variables.get("FNR")!) + 1);
    if (!isAlone) setLine(state, record);
    else state.record = record;
    return true;
  }
}
