/**
 * τ-bench and τ²-bench: an agent serves a user by tools, as a policy says, and is measured by what
 * the databases hold at the end. Databases, tools, tasks and policies are read from the original's
 * data folder; nothing of them is here.
 */

import { chatEndpointOptions } from "@pawl/core/envs/chat-endpoint.js";
import { defineToolEnv } from "@pawl/core/envs/define-env.js";
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import type { ToolEnvironment } from "@pawl/core/envs/tool-env.js";
import type { EnvPrompt } from "@pawl/core/text/prompt-style.js";
import type { ToolCall } from "@pawl/core/text/tool.js";
import { z } from "zod";
import { type Conversation, DONE, RESPOND, type WaitingUser } from "./conversation.js";
import { type DomainName, domainNames, type OpenDomain, openDomain } from "./domains.js";
import type { DomainFiles } from "./files.js";
import { replayTau } from "./replay.js";
import { type Call, type TaskSource, taskSource } from "./tasks.js";
import { createTauEnv, createWaitingTauEnv, type TauEnv, type TauWorld } from "./tau-env.js";
import { chatUser, scriptedUser } from "./users.js";
import { equal, jsonText, plainValue } from "./value.js";

/** Steps of the agent: τ allows 30; τ² counts 200 messages, two or more for each step. */
const STEP_LIMITS: Readonly<Record<1 | 2, number>> = { 1: 30, 2: 100 };

/** The options of τ-bench. */
const tauOptions = z.strictObject({
  data: z
    .string()
    .optional()
    .describe("the original's data folder, with tau1/DOMAIN and tau2/DOMAIN (default: $TAU_DATA)"),
  domain: z.enum(domainNames).default("tau2-retail").describe("which domain of which edition"),
  user: z
    .enum(["scripted", "chat", "none"])
    .default("scripted")
    .describe(
      "who the agent talks to: a script of the task's scenario, a chat model, or nobody (domains with tickets)",
    ),
  chat: chatEndpointOptions.optional().describe("user: chat: the endpoint of the user's model"),
  judge: chatEndpointOptions
    .optional()
    .describe(
      "chat model that checks the natural-language assertions of tau2 tasks (without one they do not count)",
    ),
});

type Options = z.output<typeof tauOptions>;

/** τ-bench, for the registry. */
export const tau = defineToolEnv({
  name: "tau",
  summary:
    "customers to serve by tools and policy: a shop, an airline, a carrier (tau-bench, tau2-bench)",
  options: tauOptions,
  open,
  describe,
});

function dataOf(options: Options): string {
  const data = options.data ?? (process.env.TAU_DATA || undefined);
  if (data === undefined)
    throw new EnvError(`tau: set data (or TAU_DATA) to the original's data folder. ${HOW_TO_GET}`);
  return data;
}

interface Opened {
  readonly domain: OpenDomain;
  readonly source: TaskSource;
}

function open(options: Options): ToolEnvironment {
  const data = dataOf(options);
  const opened = new Map<DomainName, Opened>();
  const get = (name: DomainName): Opened => {
    if (!domainNames.includes(name))
      throw new EnvError(`tau: there is no domain ${name}; there are ${domainNames.join(", ")}`);
    const known = opened.get(name);
    if (known !== undefined) return known;
    const domain = openDomain(data, name);
    const found = { domain, source: taskSource(domain) };
    opened.set(name, found);
    return found;
  };
  const { domain, source } = get(options.domain);
  refuseContradictions(options);
  const lists = taskLists("tau", listsOf(options, source));
  const world: TauWorld = {
    domain,
    solo: options.user === "none",
    judge: options.judge,
    taskOf({ id }: Task) {
      // Looked up first, so that an unlisted task is refused.
      const { split, type } = lists.task(id);
      return { task: source.find(split, id.slice(split.length + 1)), type };
    },
  };
  const waiting = waitingUser(options, domain, data);
  return {
    name: "tau",
    ...lists,
    stepLimit: STEP_LIMITS[domain.edition],
    maxReturn: 1,
    prompt: tauPrompt(domain.files, domain.edition, world.solo),
    create: () =>
      waiting === undefined
        ? createTauEnv(world, scriptedUser)
        : createWaitingTauEnv(world, waiting),
    // The mock domain's tasks test the machinery: two have no solution by reference.
    ...(waiting === undefined &&
      options.domain !== "tau2-mock" && {
        expert: (env) => {
          if (!("conversation" in env))
            throw new EnvError("The tau expert plays tau environments only, unwrapped.");
          return nextCall((env as TauEnv).conversation);
        },
      }),
    replayRecords: (_, texts) =>
      replayTau(
        {
          domain: (name) => get(name).domain,
          task: (name, split, id) => get(name).source.find(split, id),
        },
        texts,
      ),
  };
}

/** A user that answers later: a chat model, or the scripted one where a judge answers later. */
function waitingUser(
  { user, chat, judge }: Options,
  domain: OpenDomain,
  data: string,
): WaitingUser | undefined {
  if (user === "chat") return chatUser(chat!, domain, data);
  return judge === undefined ? undefined : async (view) => scriptedUser(view);
}

/** Settings that would be ignored. */
function refuseContradictions({ user, chat, judge, domain }: Options): void {
  if (judge !== undefined && domain.startsWith("tau1"))
    throw new EnvError(`tau: ${domain} has no natural-language assertions: leave judge out`);
  if (user === "chat" && chat === undefined)
    throw new EnvError("tau: user: chat needs chat.baseUrl and chat.model");
  if (user !== "chat" && chat !== undefined)
    throw new EnvError(`tau: chat is for user: chat; the user is ${user}`);
}

/** The task lists of the environment: without a user only tasks that have tickets. */
function listsOf({ user, domain }: Options, source: TaskSource): TaskSource["lists"] {
  if (user !== "none") return source.lists;
  const hasTicket = ({ id, split }: Task): boolean =>
    source.find(split, id.slice(split.length + 1)).ticket !== null;
  const lists = Object.entries(source.lists).map(
    ([split, list]) => [split, () => list().filter(hasTicket)] as const,
  );
  if (lists.every(([, list]) => list().length === 0))
    throw new EnvError(
      `tau: user: none needs tasks with tickets, and those of ${domain} have none; tau2-telecom and tau2-mock have them`,
    );
  return Object.fromEntries(lists);
}

const HOW_TO_GET =
  "The data of tau2-bench (sierra-research/tau2-bench) is its folder data/, with tau2/domains/retail, telecom and mock; that of tau-bench (sierra-research/tau-bench) goes into tau1/retail and tau1/airline: the files of its data folders, wiki.md, and its task lists written as JSON, tasks_test.json and so on. Files may be gzipped.";

function describe(options: Options): readonly string[] {
  const data = dataOf(options);
  const lines = domainNames.map((name) => {
    try {
      const source = taskSource(openDomain(data, name));
      const counts = Object.entries(source.lists).map(
        ([split, list]) => `${split} ${list().length}`,
      );
      return `${name}: ${counts.join(", ")}`;
    } catch (error) {
      if (error instanceof EnvError) return `${name}: ${error.message}`;
      throw error;
    }
  });
  return [...lines, HOW_TO_GET];
}

const INSTRUCTIONS =
  "You are a customer service agent. You help the user as the policy below says, and never against it. At each turn you call one tool: `respond` says something to the user, the others look things up or change them. Before a change, tell the user what will happen and wait for a yes.";
const SOLO_INSTRUCTIONS =
  "You are a customer service agent. You work on the ticket below alone, as the policy says, and never against it. At each turn you call one tool, those of the user's device included. Call `done` when the case is solved or cannot be.";

/** The words of a domain. */
function tauPrompt(files: DomainFiles, edition: 1 | 2, solo: boolean): EnvPrompt {
  const policy = edition === 1 ? files.text("wiki.md") : tau2Policy(files, solo);
  const instructions = solo ? SOLO_INSTRUCTIONS : INSTRUCTIONS;
  return {
    instructions: `<instructions>\n${instructions}\n</instructions>\n<policy>\n${policy}\n</policy>`,
    advice: "First reason step by step about what the user needs and what the policy allows",
    history: "all",
  };
}

function tau2Policy(files: DomainFiles, solo: boolean): string {
  if (!files.has("main_policy.md"))
    return solo ? files.text("policy_solo.md") : files.text("policy.md");
  const main = files.text(solo ? "main_policy_solo.md" : "main_policy.md");
  const support = solo
    ? files.text("tech_support_manual_solo.md", "tech_support_workflow_solo.md")
    : files.text("tech_support_manual.md");
  return `<main_policy>\n${main}\n</main_policy>\n<tech_support_policy>\n${support}\n</tech_support_policy>`;
}

// The expert: it makes the reference solution's calls in order, asks the user for those that are
// the user's, tells what has to be told, and asks whether there is anything else until the user
// ends the conversation.

/** The expert's next call. */
function nextCall({ about, messages }: Conversation): ToolCall {
  const { task, solo } = about;
  const made = messages
    .slice(task.history.length)
    .flatMap((one) => (one.role === "tool" ? [] : one.calls));
  const say = (content: string): ToolCall => ({ tool: RESPOND, arguments: { content } });
  let done = 0;
  for (const call of made) if (isSame(call, task.reference[done])) done++;
  const next = task.reference[done];
  const words = messages.flatMap((one) =>
    one.role === "assistant" && one.content !== null
      ? [one.content.toLowerCase().replaceAll(",", "")]
      : [],
  );
  const untold = task.communicate.filter(
    (one) => !words.some((text) => text.includes(one.toLowerCase())),
  );
  const summary = `Here is what I found: ${untold.join("; ")}.`;
  // A transfer may end the conversation, so everything is said before.
  if (next?.name === "transfer_to_human_agents" && untold.length > 0 && !solo) return say(summary);
  if (next !== undefined) {
    if (next.side === "assistant" || solo) return callOf(next);
    return say(`Please do this on your side: ${next.name} ${jsonText(next.given)}`);
  }
  if (solo) return { tool: DONE, arguments: {} };
  return say(untold.length > 0 ? summary : "Is there anything else I can help you with?");
}

function isSame(made: Call, reference: Call | undefined): boolean {
  return (
    reference !== undefined && made.name === reference.name && equal(made.given, reference.given)
  );
}

function callOf({ name, given }: Call): ToolCall {
  const values = plainValue(given) as ToolCall["arguments"];
  return { tool: name, arguments: values, written: jsonText(given) };
}
