/**
 * How a model is asked what an action will do, and how its answer is parsed.
 *
 * In the compact style the question is the same stream that the policy reads and continues:
 * history, action, `<|see|>`; the answer is the observation, up to the `<|do|>` or `<|end|>` after
 * it. In the chat style it is the conversation, with its tools and with what the policy wrote, and
 * the answer is the next message, the user's or a tool's. So the world is learnt on the tokens that
 * the policy acts on. In the full style the question is prose: the model reasons in `<think>` first,
 * then writes the next state in `<next_state>`.
 */
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  encodePrompt,
  encodeResponse,
  type LastStep,
  responseEndId,
  responseEndIds,
  stepPrompt,
} from "@pawl/core/text/encode.js";
import type { PromptPiece, PromptStyle } from "@pawl/core/text/prompt.js";
import { markers } from "@pawl/core/text/prompt-compact.js";
import { recentPairs } from "@pawl/core/text/prompt-style.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import { type Tokenizer, TokenizerError } from "@pawl/core/text/tokenizer.js";
import { toolsText } from "@pawl/core/text/tool.js";
import {
  actionOf,
  historyOf,
  isLast,
  nextStateOf,
  responseOf,
  type Triplet,
  toolsOf,
} from "./triplet.js";

/** Problems of an answer that show before its content is read. */
export type AnswerProblem = "empty" | "unended" | "malformed";

/** A parsed answer. */
export interface Answer {
  /** The predicted next state; empty if there is none. */
  readonly text: string;
  readonly problem?: AnswerProblem;
}

/** A way to ask for the next state. */
export interface Question {
  /** Token sequences that end an answer. */
  readonly stop: readonly (readonly number[])[];
  /** The question, as tokens. */
  ask(triplet: Triplet): Sequence;
  /** The model's response as text, and the next state in it. */
  read(tokens: readonly number[]): Answer & { readonly response: string };
  /** The tokens of the correct answer, for supervised learning. */
  answer(triplet: Triplet): readonly number[];
}

/** The question for a prompt style. */
export function worldQuestion(tokenizer: Tokenizer, style: PromptStyle): Question {
  if (style.responseEnd !== "") return streamQuestion(tokenizer, style);
  return style.name === "chat"
    ? conversationQuestion(tokenizer, style)
    : proseQuestion(tokenizer, style);
}

/** What the policy read before the step, encoded anew; the oldest turns go where they went then. */
export function policyPrompt(
  tokenizer: Tokenizer,
  style: PromptStyle,
  { source, step }: Triplet,
): Sequence {
  const rendered = (at: number) => () => style.render(historyOf({ source, step: at }));
  if (style.promptTokens === undefined) return encodePrompt(tokenizer, style, rendered(step)());
  let last: LastStep | undefined;
  for (let at = 0; ; at++) {
    const { sequence, pieces } = stepPrompt(tokenizer, style, rendered(at), last);
    if (at === step) return sequence;
    const { response, action, observation } = source.steps[at]!;
    last = { prompt: pieces!, response, action, observation };
  }
}

function conversationQuestion(tokenizer: Tokenizer, style: PromptStyle): Question {
  if (style.around?.[1])
    throw new TokenizerError(
      `The observations of this environment are followed by ${JSON.stringify(style.around[1])} in the chat style, so their end cannot be sampled. Use --prompt.style full.`,
    );
  const ends = responseEndIds(tokenizer, style);
  // The answer is sampled after the question, so it is encoded apart from it, and always ended.
  const apart = { ...style, tokens: "pieces", observationEnd: "learnt" } as const;
  /** The conversation up to the world's answer, then the answer's tokens. */
  const split = (triplet: Triplet) => {
    const response = responseOf(triplet);
    const asked = appendResponse(policyPrompt(tokenizer, style, triplet), {
      ids: encodeResponse(tokenizer, style, response),
    });
    const { ids, spans } = appendObservation(
      asked,
      tokenizer,
      apart,
      nextStateOf(triplet),
      isLast(triplet),
      { response, tools: toolsOf(triplet.source) },
    );
    const at = spans.findIndex(({ kind }) => kind === "observation");
    const start = at < 0 ? ids.length : spans[at]!.start;
    const before = at < 0 ? spans : spans.slice(0, at);
    return { ids, start, before };
  };
  return {
    stop: ends.map((end) => [end]),
    ask(triplet) {
      const { ids, start, before } = split(triplet);
      const spans = before.map((span) => ({ ...span, kind: "prompt" as const }));
      return { ids: ids.slice(0, start), spans };
    },
    read(tokens) {
      const ended = ends.includes(tokens.at(-1)!);
      const response = decodeResponse(tokenizer, style, tokens);
      return { response, ...judged(response.trim(), ended) };
    },
    answer(triplet) {
      const { ids, start } = split(triplet);
      const answer = ids.slice(start);
      return ends.includes(answer.at(-1)!) ? answer : [...answer, responseEndId(tokenizer, style)];
    },
  };
}

function streamQuestion(tokenizer: Tokenizer, style: PromptStyle): Question {
  const ends = [markers.action, markers.end].map((marker) => {
    const id = tokenizer.id(marker);
    if (id === undefined) {
      throw new TokenizerError(
        `An observation of the prompt style ${style.name} ends with ${marker}, which is not a token of this tokenizer. Use --prompt.style full or chat, or a tokenizer made by buildTokenizer.`,
      );
    }
    return id;
  });
  return {
    stop: ends.map((id) => [id]),
    ask(triplet) {
      const prompt = encodePrompt(tokenizer, style, style.render(historyOf(triplet)));
      const action = encodeResponse(tokenizer, style, style.format(actionOf(triplet)));
      const ids = [...prompt.ids, ...action];
      const span = {
        kind: "prompt",
        start: prompt.ids.length,
        end: ids.length,
        origin: "policy",
      } as const;
      return { ids, spans: [...prompt.spans, span] };
    },
    read(tokens) {
      const ended = ends.includes(tokens.at(-1)!);
      const response = tokenizer.decode(ended ? tokens.slice(0, -1) : tokens);
      return { response, ...judged(response.trim(), ended) };
    },
    answer(triplet) {
      const none = { ids: [], spans: [] };
      return appendObservation(none, tokenizer, style, nextStateOf(triplet), isLast(triplet)).ids;
    },
  };
}

function proseQuestion(tokenizer: Tokenizer, style: PromptStyle): Question {
  const ends = responseEndIds(tokenizer, style);
  return {
    stop: ends.map((end) => [end]),
    ask: (triplet) => encodePrompt(tokenizer, style, proseOf(triplet, style.history ?? "all")),
    read(tokens) {
      const response = decodeResponse(tokenizer, style, tokens);
      const ended = ends.includes(tokens.at(-1)!);
      const found = lastTagged(response);
      if (ended && found === undefined) return { response, text: "", problem: "malformed" };
      return { response, ...judged(found ?? "", ended) };
    },
    answer: (triplet) =>
      encodeResponse(
        tokenizer,
        style,
        `<think></think><next_state>${nextStateOf(triplet)}</next_state>`,
      ),
  };
}

function judged(text: string, ended: boolean): Answer {
  if (!ended) return { text, problem: "unended" };
  return text === "" ? { text, problem: "empty" } : { text };
}

/** The text of the last closed `<next_state>`: earlier reasoning may mention the tag. */
function lastTagged(response: string): string | undefined {
  const close = response.lastIndexOf("</next_state>");
  const open = close < 0 ? -1 : response.lastIndexOf("<next_state>", close);
  return open < 0 ? undefined : response.slice(open + "<next_state>".length, close).trim();
}

function proseOf(triplet: Triplet, history: number | "all"): readonly PromptPiece[] {
  const view = historyOf(triplet);
  const { tools } = view;
  const pieces: PromptPiece[] = [];
  const say = (origin: PromptPiece["origin"], text: string): void => {
    if (text !== "") pieces.push({ origin, text });
  };
  say(
    "template",
    `You foresee what happens in a simulated world. An agent acts in it by ${
      tools === undefined ? "short text commands" : "calls of tools"
    }, one at a time, and the world answers each with an observation.\n\nThe agent's task:\n`,
  );
  say("task", view.goal);
  if (tools !== undefined) {
    say("template", "\n\n");
    say("tools", toolsText(tools));
  }
  for (const pair of recentPairs(view, history)) {
    say("template", `\n\nObservation ${pair.number}:\n`);
    say("history", pair.observation);
    say("template", `\nAction ${pair.number}:\n`);
    say("history", pair.action);
  }
  say("template", `\n\nObservation ${view.index + 1}:\n`);
  say("observation", view.observation);
  say("template", `\nAction ${view.index + 1}:\n`);
  say("history", actionOf(triplet));
  say(
    "template",
    `\n\nWhat does the world answer? First reason step by step about what the action does, between <think> and </think>. Then write the next observation as the world would word it, and nothing else, between <next_state> and </next_state>.`,
  );
  return pieces;
}
