/** Stand-ins for tests: a sampler that says what a test gives it, and conversations with it. */
import type { Sample, SampleRequest } from "../engine/engine.js";
import type { Sampler } from "../rollout/scheduler.js";
import { createTokenizer, type Tokenizer } from "../text/tokenizer.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import type { Tool } from "../text/tool.js";
import type { ChatAnswer, ChatMessage } from "./chat.js";
import { createSession, type RecordedSession, type SessionOptions } from "./session.js";

/** The tools of the tests' conversations. */
export const tools: readonly Tool[] = [
  {
    name: "look",
    description: "Looks at a place.",
    parameters: { type: "object", properties: { place: { type: "string" } } },
  },
];

/** Every word of the conversations is one token, so that they are short. */
const built = buildTokenizer(
  [
    'go on enough <think>all</think><tool_call>{"name": "look", "arguments": {"place": "shelf"}}</tool_call>',
    `<tool_response>seen</tool_response>${JSON.stringify({ type: "function", function: tools[0] })}`,
  ],
  { chat: true },
);

/** The built tokenizer with another chat template around its messages. */
export function withTemplate(template: string): Tokenizer {
  const config = JSON.parse(built.files.config!) as Record<string, unknown>;
  return createTokenizer({
    ...built.files,
    config: JSON.stringify({ ...config, chat_template: template }),
  });
}

const end = "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

/** Writes tools, calls and answers as Hermes and Qwen do: a run of tools' answers is one message. */
export const hermes: Tokenizer = withTemplate(
  [
    "{% if tools %}{{ '<|system|>' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{{ eos_token }}{% endif %}",
    "{% for message in messages %}",
    "{% if message['role'] == 'tool' %}",
    "{% if loop.first or messages[loop.index0 - 1]['role'] != 'tool' %}{{ '<|user|>' }}{% endif %}",
    "{{ '<tool_response>' + message['content'] + '</tool_response>' }}",
    "{% if loop.last or messages[loop.index0 + 1]['role'] != 'tool' %}{{ eos_token }}{% endif %}",
    "{% else %}{{ '<|' + message['role'] + '|>' + message['content'] }}",
    "{% if message['tool_calls'] %}{% for call in message['tool_calls'] %}{{ '<tool_call>' + (call['function'] | tojson) + '</tool_call>' }}{% endfor %}{% endif %}",
    "{{ eos_token }}{% endif %}{% endfor %}",
    end,
  ].join(""),
);

/** Like Qwen3's: reasoning before the last question is dropped. */
export const forgetful: Tokenizer = withTemplate(
  `{% for message in messages %}{% set content = message['content'] %}{% if message['role'] == 'assistant' and not loop.last and '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{ '<|' + message['role'] + '|>' + content + eos_token }}{% endfor %}${end}`,
);

/** The same model with the template of models from scratch. */
export const plain: Tokenizer = built;

/** Says these texts, one after another; a text ends by itself unless it ends with "…". */
export function scripted(
  tokenizer: Tokenizer,
  texts: readonly string[],
): Sampler & { readonly asked: SampleRequest[] } {
  const asked: SampleRequest[] = [];
  return {
    asked,
    async sample(request): Promise<Sample> {
      const text = texts[asked.push(request) - 1] ?? "enough";
      const cut = text.endsWith("…");
      const words = tokenizer.encode(cut ? text.slice(0, -1) : text, { plain: true });
      const tokens = cut ? words : [...words, tokenizer.endId!];
      const logprobs = tokens.map((_, at) => -1 - at / 100);
      return { tokens, logprobs, stopReason: cut ? "length" : "stop" };
    },
  };
}

/** A session that says these texts. */
export function scriptedSession(
  texts: readonly string[],
  more: Partial<SessionOptions> = {},
): { readonly session: RecordedSession; readonly asked: readonly SampleRequest[] } {
  const { tokenizer = hermes } = more;
  const sampler = scripted(tokenizer, texts);
  const common = { maxContext: 4096, seed: 1, sampling: { maxTokens: 64 } };
  return {
    session: createSession({ sampler, tokenizer, ...common, ...more }),
    asked: sampler.asked,
  };
}

/** An answer as a client sends it back: parsed and printed anew, without the reasoning. */
export function repeated({ text, calls }: ChatAnswer): ChatMessage {
  return {
    role: "assistant",
    content: text.trim(),
    ...(calls.length > 0 && {
      calls: calls.map((call) => ({
        ...call,
        arguments: JSON.stringify(JSON.parse(call.arguments), undefined, 2),
      })),
    }),
  };
}

/** A tool's answer to each call of an answer. */
export function results({ calls }: ChatAnswer, text: string): readonly ChatMessage[] {
  return calls.map(({ id }, at) => ({ role: "tool", content: `${text} ${at}`, answers: id }));
}

/** A message of the user's. */
export const user = (content: string): ChatMessage => ({ role: "user", content });
