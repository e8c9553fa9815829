/** What was sampled as an answer: up to its stop text, in words, with its calls. */
import type { Sample } from "@pawl/core/engine/engine.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { CallForm, Tool } from "@pawl/core/text/tool.js";
import { type ParsedAnswer, parseAnswer, splitReasoning } from "@pawl/core/text/tool-calls.js";
import type { ChatAnswer } from "./chat.js";

/** The sample up to the first stop text, which is part of its tokens but not of its words. */
export function cutAtStop(
  tokenizer: Tokenizer,
  sample: Sample,
  stops: readonly string[],
): { readonly sample: Sample; readonly text: string; readonly stopText?: string } {
  const { tokens } = sample;
  const ended = tokenizer.endIds.includes(tokens.at(-1)!);
  const text = tokenizer.decode(ended ? tokens.slice(0, -1) : tokens);
  const ends = stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
  if (ends.length === 0) return { sample, text };
  const end = Math.min(...ends);
  const isWhole = (count: number): boolean => {
    const part = tokenizer.decode(tokens.slice(0, count));
    return stops.some((stop) => part.includes(stop));
  };
  let [low, high] = [1, tokens.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (isWhole(middle)) high = middle;
    else low = middle + 1;
  }
  const cut = <T>(values: readonly T[]): readonly T[] => values.slice(0, low);
  const { logprobs, sampledLogprobs } = sample;
  return {
    sample: {
      tokens: cut(tokens),
      logprobs: cut(logprobs),
      ...(sampledLogprobs !== undefined && { sampledLogprobs: cut(sampledLogprobs) }),
      stopReason: "stop",
    },
    text: text.slice(0, end),
    stopText: stops.find((stop) => text.startsWith(stop, end))!,
  };
}

/** What an answer depends on besides its tokens. */
interface Asked {
  readonly prompt: Sequence;
  readonly tools: readonly Tool[] | undefined;
  readonly form: CallForm;
  /** Number of the call in its session. */
  readonly index: number;
  /** What it was held to. */
  readonly constraint?: Constraint | undefined;
}

/** The answer in words: reasoning, text and, if tools were offered, calls. */
export function answerOf(
  response: string,
  { tokens, logprobs, stopReason }: Sample,
  { prompt, tools, form, index, constraint }: Asked,
): ChatAnswer {
  const read = tools && parseAnswer(response, form);
  // JSON that was asked for may look like a call.
  const isCalls =
    constraint?.json === undefined ||
    (read?.calls.length !== 0 &&
      read?.calls.every((call) => tools?.some(({ name }) => name === call.tool)));
  const parsed: ParsedAnswer =
    read !== undefined && isCalls ? read : { ...splitReasoning(response), calls: [] };
  const calls = parsed.calls.map((call, at) => ({
    id: callId(index, at),
    tool: call.tool,
    arguments: JSON.stringify(call.arguments),
  }));
  const unknown = calls.find(({ tool }) => !tools!.some(({ name }) => name === tool));
  const malformed =
    parsed.problem ??
    (unknown && `There is no tool ${unknown.tool}; expected one of ${namesOf(tools!)}.`);
  return {
    text: parsed.text,
    ...(parsed.reasoning !== undefined && { reasoning: parsed.reasoning }),
    calls,
    stop: stopReason === "length" ? "length" : calls.length > 0 ? "calls" : "stop",
    ...(malformed !== undefined && { malformed }),
    promptTokens: prompt.ids,
    tokens,
    logprobs,
  };
}

const namesOf = (tools: readonly Tool[]): string => tools.map(({ name }) => name).join(", ");

/** The id of a call: nine letters and digits, which some chat templates insist on. */
function callId(index: number, at: number): string {
  return `c${String(index).padStart(5, "0")}${String(at).padStart(3, "0")}`;
}
