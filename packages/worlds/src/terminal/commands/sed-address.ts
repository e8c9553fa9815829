import type { Matcher } from "../shell/regex.js";
import type { Call } from "../shell/shell.js";
import { Failure } from "./call.js";
import type { Address, SedCommand } from "./sed-script.js";

export interface Line {
  readonly text: string;
  /** Whether it had a line's end. */
  readonly ended: boolean;
}

/** What goes on while lines are edited. */
export interface State {
  readonly call: Call;
  readonly commands: readonly SedCommand[];
  readonly quiet: boolean;
  lines: readonly Line[];
  /** The next line to be read. */
  next: number;
  number: number;
  pattern: string;
  ended: boolean;
  hold: string;
  last: Matcher | undefined;
  /** For ranges: the line at which one ends, or -1 while it is open, by command. */
  readonly ranges: Map<SedCommand, number>;
  output: string[];
  /** What comes behind the present line. */
  after: string[];
  quit: number | undefined;
  /** What the commands have written to files. */
  readonly written: Map<string, string>;
}

export function isChosen(state: State, command: SedCommand): boolean {
  const { from, to } = command;
  if (from === undefined) return true;
  if (to === undefined) return fits(state, from);
  const open = state.ranges.get(command);
  if (open === undefined || (open >= 0 && open < state.number)) {
    const isZero = from.type === "line" && from.line === 0;
    if (!(isZero && open === undefined) && !fits(state, from)) return false;
    let end = -1;
    if (to.type === "line") end = Math.max(to.line, state.number);
    else if (to.type === "more") end = state.number + to.count;
    else if (to.type === "multiple")
      end = to.of === 0 ? state.number : Math.ceil(state.number / to.of) * to.of;
    else if (isZero && fits(state, to)) end = state.number;
    else if (to.type === "last" && isLast(state)) end = state.number;
    state.ranges.set(command, end);
    return true;
  }
  if (open === -1 && fits(state, to)) state.ranges.set(command, state.number);
  return true;
}

const isLast = (state: State): boolean => state.next >= state.lines.length;

function fits(state: State, address: Address): boolean {
  switch (address.type) {
    case "line":
      return state.number === address.line;
    case "last":
      return isLast(state);
    case "step":
      return address.step === 0
        ? state.number === address.first
        : state.number >= address.first && (state.number - address.first) % address.step === 0;
    case "expression":
      return expression(state, address.matcher).test(state.pattern);
    default:
      return false;
  }
}

export function expression(state: State, matcher: Matcher | undefined): Matcher {
  const found = matcher ?? state.last;
  if (found === undefined) throw new Failure("no previous regular expression");
  state.last = found;
  return found;
}
