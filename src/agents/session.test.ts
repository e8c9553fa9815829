import { describe, expect, it } from "vitest";
import { hasThought } from "../text/conversation.js";
import { loadTokenizer } from "../text/tokenizer.js";
import type { ChatMessage } from "./chat.js";
import {
  forgetful,
  hermes,
  plain,
  repeated,
  results,
  scriptedSession,
  tools,
  user,
  withTemplate,
} from "./testing.js";

const qwen = process.env.PAWL_QWEN_TOKENIZER;

const call = (place: string): string =>
  `<tool_call>{"name": "look",  "arguments": {"place": "${place}"}}</tool_call>`;
const opening: readonly ChatMessage[] = [{ role: "system", content: "Be brief." }, user("go on")];
const isPrefix = (a: readonly number[], b: readonly number[]): boolean =>
  a.length <= b.length && a.every((id, at) => id === b[at]);

describe("a session", () => {
  it("appends to the tokens that were sampled, whatever the client made of them", async () => {
    const texts = [
      `go  ${call("shelf")}`,
      `<think>hm</think>${call("a")}\n${call("b")}`,
      " enough ",
      "on",
    ];
    const { session, asked } = scriptedSession(texts);
    let messages = opening;
    for (let turn = 0; turn < texts.length; turn++) {
      const answer = await session.ask({ messages, tools });
      const next = answer.calls.length > 0 ? results(answer, "seen") : [user("and?")];
      messages = [...messages, repeated(answer), ...next];
    }
    for (const [at, { prompt, answer, sequence }] of session.calls.entries()) {
      expect(Array.from(asked[at]!.prompt)).toEqual(prompt.ids);
      expect(answer.promptTokens).toEqual(prompt.ids);
      const later = asked[at + 1];
      if (later === undefined) continue;
      expect(session.calls[at + 1]!.parent).toBe(session.calls[at]);
      expect(isPrefix([...prompt.ids, ...answer.tokens], Array.from(later.prompt))).toBe(true);
      expect(isPrefix(sequence.ids, Array.from(later.prompt))).toBe(true);
    }
    // Nothing was tokenised again: the two blanks are still there.
    const last = hermes.decode(Array.from(asked[3]!.prompt));
    expect(last).toContain("go  <tool_call>");
    expect(last).toContain('"look",  "arguments"');
    expect(last).toContain(
      "<|user|><tool_response>seen 0</tool_response><tool_response>seen 1</tool_response>",
    );
    expect(last.endsWith("<|user|>and?<|end|><|assistant|>")).toBe(true);
  });

  it("marks what was read, said and observed", async () => {
    const { session } = scriptedSession([`${call("a")}${call("b")}`]);
    const answer = await session.ask({ messages: opening, tools });
    await session.ask({ messages: [...opening, repeated(answer), ...results(answer, "x")], tools });
    const { ids, spans, logprobs } = session.calls[0]!.sequence;
    const textOf = (kind: string) =>
      hermes.decode(
        spans
          .filter((span) => span.kind === kind)
          .flatMap(({ start, end }) => ids.slice(start, end)),
      );
    expect(textOf("action")).toBe(`${call("a")}${call("b")}<|end|>`);
    expect(textOf("template")).toBe("<|user|><tool_response>");
    expect(textOf("observation")).toBe("x 0</tool_response><tool_response>x 1");
    expect(logprobs).toEqual(answer.logprobs);
    expect(spans.map(({ end }) => end).at(-1)).toBe(ids.length);
    const origins = new Set(spans.filter(({ kind }) => kind === "prompt").map((s) => s.origin));
    expect([...origins].sort()).toEqual(["system", "task", "template"]);
  });

  it("starts a new sequence for what does not go on from an answer", async () => {
    const { session } = scriptedSession(["go", "on", "on", "on"]);
    const first = await session.ask({ messages: opening });
    await session.ask({ messages: [user("a summary, please")] });
    const changed = { ...repeated(first), content: "gone" };
    await session.ask({ messages: [...opening, changed, user("and?")] });
    // Other tools are another prompt.
    await session.ask({ messages: [...opening, repeated(first), user("and?")], tools });
    expect(session.calls.map(({ parent }) => parent)).toEqual(Array(4).fill(undefined));
    expect(session.calls.map(({ replies }) => replies.length)).toEqual([0, 0, 0, 0]);
  });

  it("keeps what was asked, though the caller goes on with the same array and messages", async () => {
    const { session } = scriptedSession(["go", "on"]);
    const own = [{ ...user("all") }];
    const listed = [...tools];
    const { text } = await session.ask({ messages: own, tools: listed });
    own.push({ role: "assistant", content: text } as (typeof own)[number], user("on"));
    await session.ask({ messages: own, tools: listed });
    own[0]!.content = "forgotten";
    own.length = 1;
    listed.length = 0;
    const [first, second] = session.calls;
    expect(first!.messages).toEqual([user("all")]);
    expect(second!.messages.map(({ content }) => content)).toEqual(["all", "go", "on"]);
    expect(second!.parent).toBe(first);
    expect(second!.tools).toEqual(tools);
  });

  it("goes on from the longest conversation, though a shorter one was asked again later", async () => {
    const { session } = scriptedSession(["go", "on", "go", "enough"]);
    const first = await session.ask({ messages: opening });
    const longer = [...opening, repeated(first), user("and?")];
    const second = await session.ask({ messages: longer });
    await session.ask({ messages: opening });
    await session.ask({ messages: [...longer, repeated(second), user("more")] });
    expect(session.calls.map(({ parent }) => parent?.index)).toEqual([undefined, 0, undefined, 1]);
  });

  it("does not go on from an answer whose call is of another tool", async () => {
    const { session } = scriptedSession([call("shelf"), "on"]);
    const answer = await session.ask({ messages: opening, tools });
    const other = { ...repeated(answer), calls: [{ ...answer.calls[0]!, tool: "take" }] };
    await session.ask({ messages: [...opening, other, ...results(answer, "seen")], tools });
    expect(session.calls[1]!.parent).toBeUndefined();
  });

  it("goes on from the latest of calls that asked and answered the same", async () => {
    const { session } = scriptedSession(["go", "go", "on"]);
    await session.ask({ messages: opening });
    const answer = await session.ask({ messages: opening });
    await session.ask({ messages: [...opening, repeated(answer), user("and?")] });
    const [first, second, third] = session.calls;
    expect(third!.parent).toBe(second);
    expect([first!.replies, second!.replies]).toEqual([[], [user("and?")]]);
  });

  it("ends an answer at once that begins with a text to stop at", async () => {
    const { session } = scriptedSession(["go on"]);
    const answer = await session.ask({ messages: opening, stop: ["go"] });
    expect(answer).toMatchObject({ text: "", stop: "stop" });
    expect(session.calls[0]!.sample.tokens.length).toBeLessThan(hermes.encode("go on").length + 1);
  });

  it("writes the reasoning of an answer that was not sampled here, and none where there is none", async () => {
    const { session } = scriptedSession(["on", "on"]);
    const chat = (reasoning: object) =>
      [user("go"), { role: "assistant", content: "on", ...reasoning }, user("and?")] as const;
    await session.ask({ messages: chat({ reasoning: "so" }) });
    await session.ask({ messages: chat({}) });
    const [thought, plainly] = session.calls.map(({ prompt }) => hermes.decode(prompt.ids));
    expect(thought).toContain("<think>\nso\n</think>\n\non");
    expect(plainly).not.toContain("<think>");
  });

  it("goes on twice from one answer as a fork, and keeps what was observed first", async () => {
    const { session, asked } = scriptedSession(["go", "on", "on"]);
    const answer = await session.ask({ messages: opening });
    const after = [...opening, repeated(answer)];
    await Promise.all(
      ["left", "right"].map((way) => session.ask({ messages: [...after, user(way)] })),
    );
    const [first, ...forks] = session.calls;
    expect(forks.map(({ parent }) => parent)).toEqual([first, first]);
    expect(first!.replies).toEqual([user("left")]);
    const answered = [...first!.prompt.ids, ...first!.sample.tokens];
    for (const { prompt } of asked.slice(1))
      expect(isPrefix(answered, Array.from(prompt))).toBe(true);
  });

  it("renders the conversation whole where the template forgets, and still observes", async () => {
    const { session } = scriptedSession(["<think>hm</think>go", "on"], { tokenizer: forgetful });
    const answer = await session.ask({ messages: opening });
    expect(answer).toMatchObject({ text: "go", reasoning: "hm" });
    await session.ask({ messages: [...opening, repeated(answer), user("and?")] });
    const [first, second] = session.calls;
    expect(second!.parent).toBeUndefined();
    expect(forgetful.decode(second!.prompt.ids)).not.toContain("hm");
    expect(forgetful.decode(first!.sequence.ids)).toMatch(/hm.*and\?<\|end\|>$/);
    expect(hasThought(first!.response)).toBe(true);
  });

  it("joins messages for templates that take them only in turn", async () => {
    const tokenizer = withTemplate(
      "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) or message['role'] == 'tool' %}{{ raise_exception('in turn') }}{% endif %}{{ '<|' + message['role'] + '|>' + message['content'] + eos_token }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
    );
    const texts = ['[{"name": "look", "arguments": {}}, {"name": "look"}]', "on"];
    const { session, asked } = scriptedSession(texts, { tokenizer });
    const answer = await session.ask({ messages: opening, tools });
    expect(answer.calls).toHaveLength(2);
    await session.ask({ messages: [...opening, repeated(answer), ...results(answer, "x")], tools });
    expect(tokenizer.decode(Array.from(asked[1]!.prompt))).toMatch(
      /<\|user\|>x 0\n\nx 1<\|end\|><\|assistant\|>$/,
    );
    expect(session.calls[1]!.parent).toBe(session.calls[0]);
  });

  it("has the same seeds in any order, and another for the same prompt again", async () => {
    const ways = ["left", "right", "left"];
    const seedsOf = async (order: readonly string[]) => {
      const { session, asked } = scriptedSession([]);
      for (const way of order) await session.ask({ messages: [user(way)] });
      return asked.map(({ seed }) => seed);
    };
    const seeds = await seedsOf(ways);
    expect(new Set(seeds).size).toBe(3);
    const [right, left, again] = await seedsOf(["right", "left", "left"]);
    expect([left, right, again]).toEqual(seeds);
    const { session, asked } = scriptedSession([], { seed: 2 });
    await session.ask({ messages: [user("left")] });
    expect(seeds).not.toContain(asked[0]!.seed);
  });
});

describe.skipIf(qwen === undefined)("with Qwen's chat template (PAWL_QWEN_TOKENIZER)", () => {
  it("writes several calls and results as the template does", async () => {
    const tokenizer = await loadTokenizer(qwen!);
    const calls = ["a", "b"].map((place) => ({ name: "look", arguments: { place } }));
    // As the template writes them, so that what was sampled and what it renders can be compared.
    const written = calls.map(
      ({ name, arguments: { place } }) => `<tool_call>
{"name": "${name}", "arguments": {"place": "${place}"}}
</tool_call>`,
    );
    const { session, asked } = scriptedSession([written.join("\n"), "Two."], { tokenizer });
    let messages: readonly ChatMessage[] = opening;
    const answer = await session.ask({ messages, tools });
    messages = [...messages, repeated(answer), ...results(answer, "seen")];
    const second = await session.ask({ messages, tools });
    await session.ask({ messages: [...messages, repeated(second), user("Sure?")], tools });
    expect(session.calls.map(({ parent }) => parent?.index)).toEqual([undefined, 0, 1]);
    const rendered = tokenizer.chat(
      [
        { role: "system", content: "Be brief." },
        { role: "user", content: "go on" },
        {
          role: "assistant",
          content: "",
          tool_calls: calls.map((call, at) => ({
            id: `c${at}`,
            type: "function" as const,
            function: call,
          })),
        },
        { role: "tool", content: "seen 0" },
        { role: "tool", content: "seen 1" },
        { role: "assistant", content: "Two." },
        { role: "user", content: "Sure?" },
      ],
      { tools, addGenerationPrompt: true },
    );
    expect(tokenizer.decode(Array.from(asked[2]!.prompt))).toBe(rendered);
  });
});

describe("an answer", () => {
  const answerTo = async (text: string, tokenizer = hermes, offered = tools) =>
    await scriptedSession([text], { tokenizer }).session.ask({
      messages: opening,
      ...(offered.length > 0 && { tools: offered }),
    });

  it.each([
    ["go", { text: "go", calls: [], stop: "stop" }],
    ["go…", { text: "go", stop: "length" }],
    [
      call("shelf"),
      { text: "", calls: [{ tool: "look", arguments: '{"place":"shelf"}' }], stop: "calls" },
    ],
    [`so: ${call("a")} then\n${call("b")}`, { text: "so:\nthen", stop: "calls" }],
    ["<think>a</think>\n\ngo", { text: "go", reasoning: "a" }],
    ["a</think>go", { text: "go", reasoning: "a" }],
    ["<think>a…", { text: "", reasoning: "a", stop: "length" }],
    ['<tool_call>{"name": look}</tool_call>', { calls: [], malformed: /not JSON/, stop: "stop" }],
    ['<tool_call>{"name": "look"}', { malformed: /does not end/ }],
    ['<tool_call>{"name": "look", "arguments": [1]}</tool_call>', { malformed: /JSON object/ }],
    [
      '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
      { malformed: /no tool fly; .*look/ },
    ],
  ])("%s", async (text, expected) => {
    const answer = await answerTo(text);
    const { malformed, ...rest } = expected as { malformed?: RegExp };
    expect(answer).toMatchObject(rest);
    if (malformed === undefined) expect(answer.malformed).toBeUndefined();
    else expect(answer.malformed).toMatch(malformed);
    // A malformed call is passed on as it was written: the agent decides.
    if (malformed !== undefined && answer.calls.length === 0) expect(answer.text).toBe(text);
  });

  it("in plain JSON is a call, or not", async () => {
    expect((await answerTo('{"name": "look", "arguments": {}}', plain)).calls).toHaveLength(1);
    expect(await answerTo('{"n": 1}', plain)).toMatchObject({ text: '{"n": 1}', calls: [] });
    expect((await answerTo('{"name": "look", ', plain)).malformed).toMatch(/not JSON/);
    expect(await answerTo(call("a"), hermes, [])).toMatchObject({ text: call("a"), stop: "stop" });
  });

  it("ends at a stop text, which is not part of its words but of its tokens", async () => {
    const { session } = scriptedSession(["go on enough shelf"]);
    const answer = await session.ask({ messages: opening, stop: [" enough", " shelf"] });
    expect(answer).toMatchObject({ text: "go on", stop: "stop" });
    expect(hermes.decode(answer.tokens)).toBe("go on enough");
    expect(answer.logprobs).toHaveLength(answer.tokens.length);
  });
});

describe("what a session refuses", () => {
  it("calls after its end, and beyond its limits", async () => {
    const { session } = scriptedSession([], { callLimit: 1 });
    await session.ask({ messages: opening });
    await expect(session.ask({ messages: opening })).rejects.toThrow("has made 1 calls");
    expect(session.limit).toBe("step-limit");
    session.end();
    await expect(session.ask({ messages: opening })).rejects.toThrow("the session has ended");
    const short = scriptedSession([], { maxContext: 3 }).session;
    await expect(short.ask({ messages: opening })).rejects.toThrow(/tokens, and the model reads 3/);
    expect(short.limit).toBe("context-limit");
  });

  it("conversations that cannot be answered", async () => {
    const { session } = scriptedSession([]);
    await expect(session.ask({ messages: [] })).rejects.toThrow("there is none");
    const last: ChatMessage = { role: "assistant", content: "go" };
    await expect(session.ask({ messages: [...opening, last] })).rejects.toThrow("the assistant's");
    const bad = { ...last, calls: [{ id: "x1", tool: "look", arguments: "{" }] };
    await expect(session.ask({ messages: [...opening, bad, user("?")] })).rejects.toThrow(
      "call x1: its arguments are not JSON",
    );
  });

  it("to record an answer for which nobody waits any more", async () => {
    const stop = new AbortController();
    const { session } = scriptedSession([], {
      sampler: {
        async sample(_, signal) {
          stop.abort(new Error("gone"));
          signal!.throwIfAborted();
          throw new Error("not reached");
        },
      },
    });
    await expect(session.ask({ messages: opening }, stop.signal)).rejects.toThrow("gone");
    expect(session.calls).toEqual([]);
  });
});

it("samples as the run says if that is fixed, and as asked otherwise", async () => {
  const request = { messages: opening, temperature: 0, topP: 0.5, topK: 3, seed: 7, maxTokens: 9 };
  const free = scriptedSession([]);
  await free.session.ask(request);
  expect(free.asked[0]).toMatchObject({
    temperature: 0,
    topP: 0.5,
    topK: 3,
    seed: 7,
    maxTokens: 9,
  });
  const fixed = scriptedSession([], { fixed: true, sampling: { maxTokens: 5, temperature: 0.7 } });
  await fixed.session.ask(request);
  const [asked] = fixed.asked;
  expect(asked).toMatchObject({ temperature: 0.7, maxTokens: 5 });
  expect(asked).not.toHaveProperty("topP");
  expect(asked!.seed).not.toBe(7);
});
