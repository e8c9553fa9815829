/** What a request asks of its answer, as a constraint on what is sampled. */

import { setImmediate } from "node:timers/promises";
import { ConstraintError } from "@pawl/core/constraint/automaton.js";
import { canConstrain, constraintAutomaton } from "@pawl/core/constraint/constraint.js";
import { messageOf } from "@pawl/core/errors.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import type { CallForm, Tool } from "@pawl/core/text/tool.js";
import type { ChatRequest, Constraints } from "./chat.js";
import { SessionError } from "./session-error.js";

/**
 * The constraint of a request, if it has one. Refuses schemas that cannot be kept to, and all of
 * them if the engine cannot.
 */
export function constraintOf(
  request: ChatRequest,
  form: CallForm,
  isAble: boolean,
): Constraint | undefined {
  const part = partOf(request);
  if (part === undefined) return undefined;
  if (!isAble)
    throw new SessionError(
      "is not supported: this engine cannot hold answers to a schema; use the embedded engine or our own engine server, or leave it out",
      part,
    );
  const { tools = [], toolChoice, strictTools = [], oneCall = false, format } = request;
  const named = typeof toolChoice === "object" ? toolChoice.tool : undefined;
  const callable = tools.filter(({ name }) => named === undefined || name === named);
  if (toolChoice !== undefined && callable.length === 0)
    throw new SessionError(
      named === undefined
        ? "no tools are offered, so none can be called"
        : `there is no tool ${named}; expected one of ${tools.map(({ name }) => name).join(", ")}`,
      "toolChoice",
    );
  const isSingle = oneCall || named !== undefined;
  const calls = callable.length > 0 && {
    calls: {
      form,
      tools: callable.map((tool) => heldTool(tool, strictTools)),
      ...(isSingle && { single: true as const }),
    },
  };
  const constraint: Constraint =
    toolChoice === undefined && format !== undefined
      ? { json: format.schema ?? true, ...calls }
      : { ...calls, ...(toolChoice === undefined && { text: true as const }) };
  try {
    constraintAutomaton(constraint);
  } catch (error) {
    if (error instanceof ConstraintError) throw new SessionError(error.message, part);
    throw error;
  }
  return constraint;
}

/** What of a request asks for a constraint; undefined if nothing does. */
function partOf(request: ChatRequest): keyof Constraints | undefined {
  const { tools = [], toolChoice, strictTools = [], oneCall = false, format } = request;
  if (strictTools.length > 0) return "strictTools";
  if (format !== undefined) return "format";
  if (toolChoice !== undefined) return "toolChoice";
  return oneCall && tools.length > 0 ? "oneCall" : undefined;
}

/** Arguments that need not be right are held to their schema where that can be done. */
function heldTool({ name, parameters }: Tool, strict: readonly string[]) {
  const isHeld = strict.includes(name) || canConstrain(parameters);
  return { name, arguments: isHeld ? parameters : true };
}

/** How a session refuses. */
export interface Refusals {
  /** Throws this error, soon or never. */
  refuse(error: unknown): Promise<never>;
  /** Rejects when calls are no longer refused. */
  readonly exhausted: Promise<never>;
}

/** Refuses calls so many times, those of one turn together; the next ones are never answered. */
export function createRefusals(limit = Number.POSITIVE_INFINITY): Refusals {
  let refused = 0;
  let turn: Promise<void> | undefined;
  let exhaust: (error: Error) => void = () => undefined;
  const exhausted = new Promise<never>((_, reject) => {
    exhaust = reject;
  });
  // It may be rejected when nothing awaits it.
  exhausted.catch(() => undefined);
  return {
    exhausted,
    async refuse(error) {
      if (refused >= limit) {
        exhaust(
          new SessionError(
            `the agent went on asking after it was refused ${limit} times: ${messageOf(error)}`,
          ),
        );
        return new Promise(() => undefined);
      }
      turn ??= setImmediate().then(() => {
        refused++;
        turn = undefined;
      });
      await turn;
      throw error;
    },
  };
}
