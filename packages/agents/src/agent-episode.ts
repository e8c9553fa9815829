/**
 * An agent's calls as an episode: every call is a step, with the messages that answered it as its
 * observation. Calls that continue one another follow one another; each fork is a sequence of its
 * own after that, in the same episode and with the same return. Where an agent forks, steps say when
 * they were taken; they say what they acted on where that is not what was observed before.
 */
import { inTime, type Step } from "@pawl/core/rollout/episode.js";
import { callText } from "@pawl/core/text/tool.js";
import type { ChatCall } from "./chat.js";
import type { RecordedCall } from "./session.js";

/** The steps of a session, without the calls that are no turns of the agent. */
export function agentSteps(
  calls: readonly RecordedCall[],
  isTurn: (call: RecordedCall) => boolean = () => true,
): readonly Step[] {
  const turns = inChains(calls).filter(isTurn);
  const steps = turns.map(stepOf);
  const order = [...turns].sort((a, b) => a.index - b.index);
  const isListed = order.every((call, at) => call === turns[at]);
  return steps.map((step, at) => {
    const seen = seenBy(turns[at]!);
    // Before the first step, an agent's episode has no observation.
    const isNext = seen === (steps[at - 1]?.observation ?? "");
    return {
      ...step,
      ...(!isListed && { time: order.indexOf(turns[at]!) }),
      ...(!isNext && { seen }),
    };
  });
}

/** What a call answers: the messages after the last answer, or all but the instructions. */
function seenBy({ messages }: RecordedCall): string {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const latest =
    last < 0 ? messages.filter(({ role }) => role !== "system") : messages.slice(last + 1);
  return textOf(latest);
}

const textOf = (messages: RecordedCall["messages"]): string =>
  messages.map(({ content }) => content).join("\n");

/** The calls in chains of continuations, in the order in which the chains begin. */
function inChains(calls: readonly RecordedCall[]): readonly RecordedCall[] {
  const next = new Map<RecordedCall, RecordedCall>();
  const heads: RecordedCall[] = [];
  for (const call of calls)
    if (call.parent !== undefined && !next.has(call.parent)) next.set(call.parent, call);
    else heads.push(call);
  return heads.flatMap((head) => {
    const chain = [head];
    for (let call = next.get(head); call !== undefined; call = next.get(call)) chain.push(call);
    return chain;
  });
}

function stepOf(call: RecordedCall): Step {
  const { pieces, response, answer, sample, replies, sequence, seconds } = call;
  const cut = sample.stopReason === "length";
  const wellFormed = answer.malformed === undefined && !cut;
  const called = answer.calls.map(({ tool, arguments: values }) =>
    callText({ tool, arguments: JSON.parse(values) as Record<string, unknown> }),
  );
  return {
    prompt: pieces,
    response,
    action: called.length > 0 ? called.join("\n") : answer.text,
    wellFormed,
    ...(cut && { cut: true as const }),
    valid: wellFormed,
    observation: textOf(replies),
    reward: 0,
    sequence,
    ...(answer.calls.length > 0 && { calls: answer.calls.map((one) => resultOf(one, replies)) }),
    seconds,
  };
}

/** A tool call with what came back for it. */
function resultOf(
  { id, tool, arguments: values }: ChatCall,
  replies: RecordedCall["replies"],
): NonNullable<Step["calls"]>[number] {
  const reply = replies.find(({ answers }) => answers === id);
  return { tool, arguments: values, ...(reply !== undefined && { result: reply.content }) };
}

/** The steps with the reward of their episode on the one that was taken last. */
export function withReward(steps: readonly Step[], reward: number): readonly Step[] {
  const last = inTime(steps).at(-1);
  return steps.map((step, at) => (at === last ? { ...step, reward } : step));
}

/** What the agent was asked to do: the user's first message. */
export function goalOf(calls: readonly RecordedCall[]): string {
  return calls[0]?.messages.find(({ role }) => role === "user")?.content ?? "";
}
