/**
 * The desk: customer service of a small shop, worked by tool calls. A customer wants something, the
 * shop has rules about it, and the tools do what they are told, right or wrong. An episode ends
 * when the case is closed. It is a success if the records are then what the rules demand, and the
 * case was closed with the right outcome.
 *
 * `case.ts` says what the splits are.
 */
import { z } from "zod";
import type { ToolCall } from "../../text/tool.js";
import { defineToolEnv } from "../define-env.js";
import { EnvError, type StepResult, type Task } from "../env.js";
import { taskLists } from "../task-lists.js";
import type { ToolEnv, ToolEnvironment } from "../tool-env.js";
import { act, possibleCalls, sights } from "./act.js";
import { type Case, drawCase, type Level, levels, type Split, splitSizes, typeOf } from "./case.js";
import { describeStart, goalOf } from "./context.js";
import { expertCall } from "./expert.js";
import { deskPrompt } from "./prompt.js";
import { grant, isKnown, rightOutcome } from "./rules.js";
import { copyState, type DeskState, initialState, sameRecords } from "./state.js";
import { irreversibleTools, toolsOf } from "./tools.js";

const deskOptions = z.strictObject({
  level: z
    .enum(levels)
    .default("medium")
    .describe(
      "easy: 3 kinds of requests, 6 tools, fixed rules; medium: 6 kinds, 12 tools, rules to read; hard: two requests, and customers who are not who they say",
    ),
  seed: z.int().default(0).describe("random seed of the cases"),
});

type Settings = z.output<typeof deskOptions>;

const stepLimits: Readonly<Record<Level, number>> = { easy: 10, medium: 20, hard: 30 };

/** A running desk, with the state that its expert sees. */
interface DeskEnv extends ToolEnv {
  readonly desk: DeskState;
}

/** The desk, for the registry. */
export const desk = defineToolEnv({
  name: "desk",
  summary: "customer service of a made-up shop by tool calls: look up, follow the rules, close",
  options: deskOptions,
  open,
  describe: ({ level, seed }) => [
    `level: ${level}, with ${toolsOf(level).length} tools; seed: ${seed}`,
    "generated, so there is nothing to download",
  ],
});

function open({ level, seed }: Settings): ToolEnvironment {
  const tasksOf = (split: Split) => (): readonly Task[] =>
    Array.from({ length: splitSizes[split] }, (_, index) => ({
      id: `${split}/${index}`,
      split,
      type: typeOf(index, level),
    }));
  const lists = taskLists("desk", {
    train: tasksOf("train"),
    valid_seen: tasksOf("valid_seen"),
    valid_unseen: tasksOf("valid_unseen"),
    test_unseen: tasksOf("test_unseen"),
  });
  const caseOf = (task: Task): Case => {
    // Looked up first, so that an unlisted task is rejected and only listed ids are parsed.
    const { id, split } = lists.task(task.id);
    return drawCase(split as Split, Number(id.slice(split.length + 1)), level, seed);
  };
  return {
    name: "desk",
    ...lists,
    stepLimit: stepLimits[level],
    madeUp: true,
    maxReturn: 1,
    prompt: deskPrompt(level),
    create: () => createEnv(caseOf, level, undefined),
    expert: (env) => expertCall((env as DeskEnv).desk),
  };
}

function createEnv(
  caseOf: (task: Task) => Case,
  level: Level,
  started: DeskState | undefined,
): DeskEnv {
  let state = started;
  const tools = toolsOf(level);
  const current = (): DeskState => {
    if (state === undefined) throw new EnvError("desk: call reset(task) first");
    return state;
  };
  let calls: readonly ToolCall[] | undefined;
  return {
    get goal() {
      return goalOf(current().case);
    },
    get taskType() {
      return current().case.requests[0]!.kind;
    },
    get desk() {
      return current();
    },
    tools: () => tools,
    reset(task) {
      state = initialState(caseOf(task));
      calls = undefined;
      return "The customer is waiting.";
    },
    step(call) {
      const now = current();
      if (call.tool === "close_case") return closed(now, call.arguments.outcome as string);
      const { valid, text } = act(now, call);
      if (valid && changesChoices(call)) calls = undefined;
      return { observation: text, reward: 0, done: false, info: { valid, success: false } };
    },
    admissibleActions() {
      calls ??= Object.freeze(possibleCalls(current(), tools));
      return calls;
    },
    irreversible: ({ tool }) => irreversibleTools.has(tool),
    initialContext: () => describeStart(current().case),
    clone: () => createEnv(caseOf, level, state && copyState(state)),
  };
}

/** Whether a call, once carried out, changes what can be done next. */
const changesChoices = ({ tool }: ToolCall): boolean => /^(cancel|refund|replace|exch)/.test(tool);

/** Whether the case was decided on what was seen: nobody may be refused unheard. */
function wasLookedUp({ case: start, seen }: DeskState): boolean {
  const needed = isKnown(start)
    ? start.requests.map(({ order }) => sights.order(order))
    : [sights.customer, sights.asked("postcode")];
  return needed.every((sight) => (seen & sight) !== 0);
}

/** Compares the records with those that the rules demand. */
function closed(state: DeskState, outcome: string): StepResult {
  const { case: start } = state;
  const right = initialState(start);
  for (const request of start.requests) {
    const call = grant(start, request);
    if (call !== undefined) act(right, call);
  }
  const success =
    wasLookedUp(state) && outcome === rightOutcome(start) && sameRecords(state, right);
  return {
    observation: `The case is closed, ${success ? "as the rules demand" : "but not as the rules demand"}.`,
    reward: success ? 1 : 0,
    done: true,
    info: { valid: true, success },
  };
}
