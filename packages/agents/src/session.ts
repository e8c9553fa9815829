/**
 * Sessions: one episode's conversations with the model, recorded as they were sampled.
 *
 * An agent sends the whole conversation with every call. If it begins with an earlier call's
 * messages and answer, only what is new is appended to the tokens that were sampled then; they are
 * never written again. Otherwise a new sequence starts in the same session: a sub-agent, a summary,
 * or a template that is not append-only. The seed of a call comes from the session's seed and the
 * prompt's tokens, so that answers depend neither on batches nor on the order of parallel calls.
 */
import type { Sample, SampleRequest } from "@pawl/core/engine/engine.js";
import { mixSeed } from "@pawl/core/random.js";
import type { Sampler } from "@pawl/core/rollout/scheduler.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import { hasThought } from "@pawl/core/text/conversation.js";
import { appendResponse, type TokenForm } from "@pawl/core/text/encode.js";
import type { PromptPiece } from "@pawl/core/text/prompt-style.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { CallForm, Tool } from "@pawl/core/text/tool.js";
import { callFormOf } from "@pawl/core/text/tool-calls.js";
import { answerOf, cutAtStop } from "./answer.js";
import { constraintOf, createRefusals, type Refusals } from "./answer-constraint.js";
import { answerDraft } from "./answer-draft.js";
import type { ChatAnswer, ChatMessage, ChatRequest, ChatSession } from "./chat.js";
import {
  chatConversation,
  continueWith,
  encodeConversation,
  recordedPieces,
  replyMessages,
} from "./chat-tokens.js";
import { beginsWith, isSameMessage } from "./same-messages.js";
import { SessionError } from "./session-error.js";

/** The model of a session, and how it samples. */
export interface SessionOptions {
  readonly sampler: Sampler;
  readonly tokenizer: Tokenizer;
  /** The longest prompt with its answer, in tokens. */
  readonly maxContext: number;
  readonly seed: number;
  /** What is used where a request does not say; answers are never longer than `maxTokens`. */
  readonly sampling: { readonly maxTokens: number; readonly temperature?: number };
  /**
   * Every call is sampled as `sampling` says, at the session's seed, whatever the agent asks for: a
   * group whose attempts are all the same, or sampled greedily, teaches nothing.
   */
  readonly fixed?: boolean;
  /** Whether the engine can hold answers to a schema (default: no). */
  readonly constraints?: boolean | undefined;
  /** How calls are written (default: as in the chat template). */
  readonly callForm?: CallForm | undefined;
  /** How text becomes tokens (default: as a whole, and the end of what is observed is learnt). */
  readonly tokens?: TokenForm | undefined;
  /** Who answers instead of the model: a teacher, whose answers are written as the model writes. */
  readonly author?: Author | undefined;
  /** The most calls of a session (default: no limit). */
  readonly callLimit?: number | undefined;
  /** How often calls are refused; after that they are never answered (default: no limit). */
  readonly refusalLimit?: number | undefined;
}

/** Answers in the model's place. */
export type Author = (
  request: ChatRequest,
  how: {
    readonly maxTokens: number;
    readonly seed: number;
    readonly signal?: AbortSignal | undefined;
  },
) => Promise<ChatMessage>;

/** One call of the model, as it was sampled. */
export interface RecordedCall {
  /** Number of the call in its session, from 0, in the order in which they were asked. */
  readonly index: number;
  /** The call that this one continues token for token. */
  readonly parent: RecordedCall | undefined;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly Tool[] | undefined;
  /** The prompt in pieces, and in tokens. */
  readonly pieces: readonly PromptPiece[];
  readonly prompt: Sequence;
  /** What was written, with any reasoning and calls, without the token that ends it. */
  readonly response: string;
  readonly sample: Sample;
  readonly temperature: number;
  /** What the answer was held to, unless it is an author's. */
  readonly constraint: Constraint | undefined;
  readonly answer: ChatAnswer;
  /** How long the agent waited for it. */
  readonly seconds: number;
  /** Prompt and answer, with the messages that answered it if the agent went on from it. */
  readonly sequence: Sequence;
  readonly replies: readonly ChatMessage[];
}

/** A session that can be read back. */
export interface RecordedSession extends ChatSession, Refusals {
  readonly options: SessionOptions;
  /** The calls that were answered, in the order in which they were asked. */
  readonly calls: readonly RecordedCall[];
  /** Tokens that were sampled and are in no call, by the reason. */
  readonly lost: Readonly<Record<string, number>>;
  /** The limit that a call ran into, if one did. */
  readonly limit: "step-limit" | "context-limit" | undefined;
  /** Refuses further calls. */
  end(): void;
}

type OpenCall = { -readonly [K in keyof RecordedCall]: RecordedCall[K] };

/** Starts a session. */
export function createSession(options: SessionOptions): RecordedSession {
  const { sampler, tokenizer, maxContext, seed, sampling, fixed = false, author } = options;
  const form = options.callForm ?? callFormOf(tokenizer.chatTemplate);
  const { tokens = { observationEnd: "learnt" } } = options;
  const calls: OpenCall[] = [];
  const toolsOf = new Map<OpenCall, string>();
  const seeds = new Map<number, number>();
  const lost: Record<string, number> = {};
  const lose = (why: string, tokens: number): void => {
    if (tokens > 0) lost[why] = (lost[why] ?? 0) + tokens;
  };
  const refusals = createRefusals(options.refusalLimit);
  let asked = 0;
  let limit: RecordedSession["limit"];
  let ended = false;

  const refuse = (reason: NonNullable<typeof limit>, message: string): never => {
    limit ??= reason;
    throw new SessionError(message);
  };

  /** The call whose messages and answer these messages begin with; the longest, then the latest. */
  const parentOf = (messages: readonly ChatMessage[], tools: string): OpenCall | undefined => {
    let best: OpenCall | undefined;
    for (const call of calls) {
      const repeated = messages[call.messages.length];
      if (repeated === undefined || toolsOf.get(call) !== tools) continue;
      if (best !== undefined && call.messages.length < best.messages.length) continue;
      if (
        isSameMessage(answerMessage(call.answer), repeated) &&
        beginsWith(messages, call.messages)
      )
        best = call;
    }
    return best;
  };

  /** What the model wrote for a message at this place, if it was sampled here. */
  const sampled = (message: ChatMessage, at: number): string | undefined =>
    calls.findLast(
      (call) => call.messages.length === at && isSameMessage(answerMessage(call.answer), message),
    )?.response;

  const promptOf = (messages: readonly ChatMessage[], tools: readonly Tool[] | undefined) => {
    const conversation = chatConversation(messages, { tools, calls: form, sampled });
    const pieces = recordedPieces(conversation);
    const parent = parentOf(messages, toolsKey(tools));
    const replies = parent === undefined ? [] : messages.slice(parent.messages.length + 1);
    if (parent !== undefined && !replies.some(({ role }) => role === "assistant")) {
      const answered = answeredSequence(parent);
      const thought = parent.messages.some(
        (message, at) => message.role === "assistant" && hasThought(sampled(message, at) ?? ""),
      );
      const { response, answer } = parent;
      const turn = { response, calls: answer.calls.length, tools, thought };
      const { observed, next } = continueWith(
        tokenizer,
        answered,
        turn,
        replyMessages(replies),
        tokens,
      );
      // The first to go on says what was observed; the next ones are forks.
      if (parent.replies.length === 0) {
        parent.sequence = observed;
        parent.replies = replies;
      }
      if (next !== undefined) return { pieces, parent, prompt: next };
    }
    return {
      pieces,
      parent: undefined,
      prompt: encodeConversation(tokenizer, conversation, tokens),
    };
  };

  /** The seed of a call: two equal prompts of one session have two. */
  const seedOf = ({ ids }: Sequence): number => {
    const prompt = mixSeed(seed, "call", ids.join(" "));
    const before = seeds.get(prompt) ?? 0;
    seeds.set(prompt, before + 1);
    return mixSeed(prompt, before);
  };

  /** What an author says, as the model would have written it: nothing is known of its probability. */
  const dictated = async (
    author: Author,
    request: ChatRequest,
    { maxTokens, seed: own }: SampleRequest,
    signal: AbortSignal | undefined,
  ): Promise<Sample> => {
    const said = await author(request, { maxTokens, seed: own, signal });
    const [message] = chatConversation([said], { tools: request.tools, calls: form }).messages;
    const text = message!.pieces.map((piece) => piece.text).join("");
    const words = tokenizer.encode(text, { plain: true });
    const whole = [...words, tokenizer.endId!];
    const cut = whole.length > maxTokens;
    return {
      tokens: whole.slice(0, maxTokens),
      logprobs: [],
      stopReason: cut ? "length" : "stop",
    };
  };

  return {
    ...refusals,
    options,
    calls,
    lost,
    get limit() {
      return limit;
    },
    end() {
      ended = true;
    },
    ask: refusing(refusals, async (request, signal, hear) => {
      signal?.throwIfAborted();
      if (ended)
        throw new SessionError("the session has ended: start another one for another episode");
      const { stop = [] } = request;
      // The caller may go on with its own arrays; the record is what was asked.
      const messages = request.messages.map(copyOf);
      checkMessages(messages);
      const tools = request.tools?.length === 0 ? undefined : request.tools && [...request.tools];
      const constraint = constraintOf(
        { ...request, tools: tools ?? [] },
        form,
        options.constraints === true || author !== undefined,
      );
      const { callLimit = Number.POSITIVE_INFINITY } = options;
      if (asked >= callLimit)
        refuse("step-limit", `the session has made ${callLimit} calls, which is its limit`);
      const index = asked++;
      const { pieces, parent, prompt } = promptOf(messages, tools);
      const room = maxContext - prompt.ids.length;
      if (room < 1)
        refuse(
          "context-limit",
          `the conversation has ${prompt.ids.length} tokens, and the model reads ${maxContext} with its answer`,
        );
      const given: Partial<ChatRequest> = fixed ? {} : request;
      const { temperature = sampling.temperature ?? 1, topK, topP } = given;
      const own = seedOf(prompt);
      const ask: SampleRequest = {
        prompt: prompt.ids,
        maxTokens: Math.min(request.maxTokens ?? sampling.maxTokens, sampling.maxTokens, room),
        temperature,
        ...(topK !== undefined && { topK }),
        ...(topP !== undefined && { topP }),
        ...(constraint && { constraint }),
        // A text can be written in other tokens too; what comes after it is cut off below.
        stop: [
          ...tokenizer.endIds.map((id) => [id]),
          ...stop.map((text) => tokenizer.encode(text, { plain: true })),
        ],
        seed: given.seed ?? own,
        continued: true,
      };
      const draft =
        hear &&
        answerDraft(
          { tokenizer, form, tools: tools !== undefined, stop, prompt: prompt.ids },
          hear,
        );
      const started = performance.now();
      let count = 0;
      const heard = (more: readonly number[]): void => {
        count += more.length;
        draft?.add(more);
      };
      const isHeard = draft !== undefined || signal !== undefined;
      const drawn = await (author === undefined
        ? sampler.sample(ask, signal, isHeard ? heard : undefined)
        : dictated(author, { ...request, messages, ...(tools && { tools }) }, ask, signal)
      ).catch((error: unknown) => {
        lose("cancelled", count);
        throw error;
      });
      if (ended) lose("too late", drawn.tokens.length);
      if (ended) throw new SessionError("the session ended while the model was answering");
      const { sample, text, stopText } = cutAtStop(tokenizer, drawn, stop);
      lose("after a stop text", drawn.tokens.length - sample.tokens.length);
      const answer = {
        ...answerOf(text, sample, { prompt, tools, form, index, constraint }),
        ...(stopText !== undefined && { stopText }),
      };
      const call: OpenCall = {
        ...{ index, parent, messages, tools, pieces, prompt, sample, temperature },
        constraint: author === undefined ? constraint : undefined,
        ...{ answer, response: text, replies: [], sequence: prompt },
        seconds: Math.round(performance.now() - started) / 1000,
      };
      call.sequence = answeredSequence(call);
      calls.push(call);
      toolsOf.set(call, toolsKey(tools));
      calls.sort((a, b) => a.index - b.index);
      draft?.end(answer);
      return answer;
    }),
  };
}

/** Asks; whatever goes wrong is refused. */
function refusing({ refuse }: Refusals, ask: ChatSession["ask"]): ChatSession["ask"] {
  return (...asked) => ask(...asked).catch(refuse);
}

/** How many tokens the prompt of this question has, if it is written as a whole. */
export function promptLength(
  { tokenizer, callForm, tokens = { observationEnd: "learnt" } }: SessionOptions,
  { messages, tools }: ChatRequest,
): number {
  checkMessages(messages);
  const calls = callForm ?? callFormOf(tokenizer.chatTemplate);
  return encodeConversation(tokenizer, chatConversation(messages, { tools, calls }), tokens).ids
    .length;
}

/** An answer as a client repeats it. */
export function answerMessage({ text, reasoning, calls }: ChatAnswer): ChatMessage {
  return {
    role: "assistant",
    content: text,
    ...(reasoning !== undefined && { reasoning }),
    ...(calls.length > 0 && { calls }),
  };
}

function answeredSequence({ prompt, sample, temperature, constraint }: OpenCall): Sequence {
  const { tokens: ids, logprobs, ...rest } = sample;
  // An author's words have no log-probabilities under the model.
  const known = logprobs.length === ids.length && { ...rest, logprobs };
  return appendResponse(prompt, { ids, ...known, temperature, constraint });
}

function copyOf(message: ChatMessage): ChatMessage {
  const { calls } = message;
  return { ...message, ...(calls && { calls: calls.map((call) => ({ ...call })) }) };
}

const toolsKey = (tools: readonly Tool[] | undefined): string => JSON.stringify(tools ?? []);

function checkMessages(messages: readonly ChatMessage[]): void {
  const last = messages.at(-1);
  if (last === undefined) throw new SessionError("expected one message or more; there is none");
  if (last.role === "assistant")
    throw new SessionError(
      "the last message is the assistant's: expected one of the user or a tool, because an answer cannot be continued",
    );
}
