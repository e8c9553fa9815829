/** Constraints as automata: what each allows, and whether it can be kept to. */
import type { Constraint } from "../text/constraint.js";
import { isRecord } from "../text/tool.js";
import { automatonOf, ConstraintError, combined } from "./automaton.js";
import {
  type Automaton,
  accepted,
  bytes,
  character,
  choice,
  type Expression,
  LAST_CODE_POINT,
  literal,
  optional,
  repeat,
  sequence,
} from "./expression.js";
import { anyObject, exactly, lines, objectOf, oneLine } from "./json-text.js";
import { schemaValues } from "./schema-grammar.js";

const automata = new Map<string, Automaton>();
/** Automata that are kept. */
const KEPT = 64;

/** A constraint's name: two that are equal have the same one. */
export const constraintKey = (constraint: Constraint): string => JSON.stringify(constraint);

/** The texts that a constraint allows; throws a `ConstraintError` if it cannot be kept to. */
export function constraintAutomaton(constraint: Constraint): Automaton {
  const key = constraintKey(constraint);
  const automaton = automata.get(key) ?? automatonOf(expressionOf(constraint));
  if (automaton === undefined) throw new ConstraintError("the schema allows no answer");
  automata.delete(key);
  automata.set(key, automaton);
  if (automata.size > KEPT) automata.delete(automata.keys().next().value!);
  return automaton;
}

function expressionOf({ json, calls, text }: Constraint): Expression {
  const options: Expression[] = [];
  if (json !== undefined)
    options.push(json === true ? anyObject(lines) : schemaValues(json, lines));
  if (calls !== undefined) {
    const call = objectCall(calls);
    const isTagged = calls.form === "hermes";
    const most = calls.single ? 1 : Number.POSITIVE_INFINITY;
    if (text === true)
      options.push(isTagged ? taggedText(call, most) : choice(call, callFreeText()));
    else if (!isTagged) options.push(call);
    else {
      const one = tagged(call);
      options.push(sequence(one, repeat(sequence(literal("\n"), one), 0, most - 1)));
    }
  }
  return choice(...options);
}

/** One call as an object. */
function objectCall({ form, tools }: NonNullable<Constraint["calls"]>): Expression {
  const key = form === "llama" ? '"parameters"' : '"arguments"';
  return choice(
    ...tools.map(({ name, arguments: schema }) =>
      objectOf(
        [
          { name: literal('"name"'), value: exactly(name, oneLine), required: true },
          {
            name: literal(key),
            value: schema === true ? anyObject(oneLine) : schemaValues(schema, oneLine, name),
            required: true,
          },
        ],
        oneLine,
      ),
    ),
  );
}

const OPENING = "<tool_call>";
const CLOSING = "</tool_call>";
const line = optional(literal("\n"));
const tagged = (call: Expression): Expression =>
  sequence(literal(OPENING), line, call, line, literal(CLOSING));

const anyText = repeat(character([[0, LAST_CODE_POINT]]));

/** Text without these words in it. */
function without(...words: readonly string[]): Automaton {
  const whole = automatonOf(anyText)!;
  const with_ = automatonOf(
    choice(...words.map((word) => sequence(anyText, literal(word), anyText))),
  )!;
  return combined(whole, with_, "first only")!;
}

/** Text with right calls in it. */
function taggedText(call: Expression, most: number): Expression {
  const text = accepted(without(OPENING));
  return sequence(text, repeat(sequence(tagged(call), text), 0, most));
}

/** Text that is not read as a call: those stand alone, fenced, or after a thought. */
function callFreeText(): Expression {
  const blank = bytes([0x09, 0x0d], [0x20, 0x20]);
  const begun = sequence(repeat(blank), bytes([0x5b, 0x5b], [0x7b, 0x7b], [0x60, 0x60]), anyText);
  const marked = sequence(repeat(blank), literal("<|python_tag|>"), anyText);
  const calls = automatonOf(choice(begun, marked))!;
  return accepted(combined(without("</think>"), calls, "first only")!);
}

/** Whether a schema's values can be kept to. */
export function canConstrain(schema: unknown): boolean {
  try {
    schemaValues(schema, oneLine);
    return isRecord(schema);
  } catch (error) {
    if (error instanceof ConstraintError) return false;
    throw error;
  }
}
