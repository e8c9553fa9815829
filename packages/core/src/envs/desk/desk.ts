/**
 * The desk: customer service of a small shop, worked by tool calls. A customer wants something, the
 * shop has rules about it, and the tools do what they are told, right or wrong. An episode ends
 * when the case is closed. It is a success if the records are then what the rules demand, and the
 * case was closed with the right outcome.
 *
 * `case.ts` says what the splits are.
 */
import { z } from "zod";
import type { EnvPrompt } from "../../text/prompt-style.js";
import type { ToolCall } from "../../text/tool.js";
import { defineToolEnv } from "../define-env.js";
import { EnvError, type StepResult, type Task } from "../env.js";
import { numberedLists } from "../task-lists.js";
import type { ToolEnv, ToolEnvironment } from "../tool-env.js";
import { act, irreversibleTools, possibleCalls, sights, toolsOf } from "./act.js";
import {
  type Case,
  drawCase,
  grant,
  isGenuine,
  kindsOf,
  type Level,
  levels,
  POSTCODE_RULE,
  type RequestKind,
  type Rules,
  requestKinds,
  rightOutcome,
  ruleText,
  splitSizes,
  typeOf,
} from "./case.js";
import { expertCall } from "./expert.js";
import {
  copyState,
  type DeskState,
  describeCustomer,
  describeOrder,
  describeProduct,
  initialState,
  sameRecords,
} from "./state.js";

const deskOptions = z.strictObject({
  level: z
    .enum(levels)
    .default("medium")
    .describe(
      "easy: 3 kinds of requests, 6 tools, fixed rules; medium: 6, 12, and rules to read; hard: two requests each, and impostors",
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
  const { lists, placeOf } = numberedLists("desk", splitSizes, (index) => typeOf(index, level));
  const caseOf = (task: Task): Case => {
    const { split, index } = placeOf(task);
    return drawCase(split, index, level, seed);
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
  const needed = isGenuine(start)
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

const wants: Readonly<Record<RequestKind, (order: string) => string>> = {
  cancel: (order) => `wants to cancel ${order}`,
  return: (order) => `wants to return ${order}`,
  broken: (order) => `got a broken product with ${order}`,
  address: (order) => `wants ${order} sent to another address`,
  exchange: (order) => `wants another colour in ${order}`,
  late: (order) => `still waits for ${order}`,
};

/** What the customer comes with; the easy level says which order. */
function goalOf({ level, customer, orders, requests }: Case): string {
  const parts = requests.map(({ kind, order }) =>
    wants[kind](level === "easy" ? `order #${orders[order]!.number}` : "an order"),
  );
  return `${level === "easy" ? "The customer" : `Customer #${customer.number}`} ${parts.join(" and ")}.`;
}

/** Everything that lookups and questions would show. */
function describeStart(start: Case): string {
  const state = initialState(start);
  const { orders, products, requests, rules, givenPostcode } = start;
  const wishes = requests.map(({ kind, order, address, wish }) => {
    const more = address ?? (wish === undefined ? "" : products[wish]!.colour);
    return `${kind} order #${orders[order]!.number}${more === "" ? "" : `, ${more}`}`;
  });
  return [
    describeCustomer(state),
    ...orders.map((_, at) => describeOrder(state, at)),
    ...products.map((_, at) => describeProduct(state, at)),
    ...(start.level === "easy" ? [] : requestKinds.map((topic) => ruleText(topic, rules))),
    `The customer wants: ${wishes.join("; ")}. The customer knows: postcode ${givenPostcode}.`,
  ].join("\n");
}

/** The numbers in the rules of the easy level. */
const EASY: Rules = { returnDays: 30, lateDays: 7, credit: 5 };

/** The words of a level. */
function deskPrompt(level: Level): EnvPrompt {
  const rules =
    level === "easy"
      ? `These are the rules. ${kindsOf(level)
          .map((topic) => ruleText(topic, EASY))
          .join(" ")}`
      : "The rules differ from shop to shop: read those that you need. Ask the customer what only the customer knows.";
  return {
    instructions: `You work at the desk of a shop and call its tools. Look up the orders that a case is about, do what the shop's rules demand and nothing else, then close the case. ${rules}${level === "hard" ? ` ${POSTCODE_RULE}` : ""}`,
    advice: "First reason step by step about what the rules demand",
    history: "all",
  };
}
