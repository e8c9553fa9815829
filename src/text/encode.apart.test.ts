import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { worldTexts } from "../../tests/helpers/small-world.js";
import { housePrompt } from "../envs/household/prompt.js";
import { positionsOf } from "../update/transitions.js";
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  encodePrompt,
  encodeResponse,
  nextPrompt,
  observationEndNotice,
  responseEndId,
  responseEndIds,
} from "./encode.js";
import {
  type EnvPrompt,
  type PromptView,
  promptStyle,
  promptText,
  registerPromptStyle,
} from "./prompt.js";
import type { Sequence } from "./sequence.js";
import { createTokenizer, type Tokenizer } from "./tokenizer.js";
import { buildTokenizer } from "./tokenizer-builder.js";

const plain = buildTokenizer(worldTexts);
const compact = promptStyle(housePrompt, { style: "compact", history: "all" });
const full = promptStyle(housePrompt);

const view: PromptView = {
  goal: "put a cool plum on the shelf",
  firstObservation: "A kitchen. <|end|>",
  observation: "A kitchen. <|end|>",
  steps: [],
  admissible: ["look"],
  index: 0,
};

/** A tokenizer with a chat template. */
function chatting(chatTemplate: string): Tokenizer {
  return createTokenizer({ ...plain.files, chatTemplate });
}

function expectCovered(sequence: Sequence): void {
  let at = 0;
  for (const span of sequence.spans) {
    expect(span.start).toBe(at);
    expect(span.end).toBeGreaterThan(span.start);
    at = span.end;
  }
  expect(at).toBe(sequence.ids.length);
}

describe("the end of an observation", () => {
  const speaker = buildTokenizer(worldTexts, { chat: true });
  /** The tokens of an observation that are learnt, and what is read after them. */
  const learnt = (
    name: "compact" | "chat" | "full",
    { end = true, done = false, observation = "It is empty.", words = {} as EnvPrompt } = {},
  ) => {
    const options = { style: name, history: "all", observationEnd: end } as const;
    const style = promptStyle(words, options, speaker);
    const asked = encodePrompt(speaker, style, style.render(view));
    const ids = encodeResponse(speaker, style, "open fridge 1");
    const acted = appendResponse(asked, { ids });
    const step = appendObservation(acted, speaker, style, observation, done);
    expectCovered(step);
    const { observationStart, observationEnd } = positionsOf(step);
    return [
      speaker.decode(step.ids.slice(observationStart, observationEnd)),
      speaker.decode(step.ids.slice(observationEnd)),
    ];
  };

  it("is one token in every style, and none if it is only read", () => {
    expect(learnt("compact")).toEqual(["It is empty.<|do|>", ""]);
    expect(learnt("compact", { done: true })).toEqual(["It is empty.<|end|>", ""]);
    expect(learnt("chat")).toEqual(["It is empty.<|end|>", ""]);
    expect(learnt("chat", { done: true })).toEqual(["It is empty.<|end|>", ""]);
    expect(learnt("full")).toEqual(["It is empty.<|end|>", ""]);
    expect(learnt("compact", { end: false })).toEqual(["It is empty.", "<|do|>"]);
    expect(learnt("chat", { end: false })).toEqual(["It is empty.", ""]);
    expect(learnt("full", { end: false })).toEqual(["It is empty.", ""]);
  });

  it("is all that is learnt of an observation without a word", () => {
    expect(learnt("compact", { observation: "" })).toEqual(["<|do|>", ""]);
    expect(learnt("chat", { observation: "" })).toEqual(["<|end|>", ""]);
    expect(learnt("full", { observation: "" })).toEqual(["<|end|>", ""]);
  });

  it("is not learnt where the environment writes something after its observations", () => {
    const words = { around: ["<information>", "</information>"] } as const;
    expect(learnt("chat", { words })).toEqual(["It is empty.", "</information>"]);
    const style = promptStyle(words, { style: "chat" }, speaker);
    expect(observationEndNotice(speaker, style)).toMatch(/comes "<\/information>", which does not/);
    const literal = promptStyle(words, { style: "chat", observationEnd: false }, speaker);
    expect(observationEndNotice(speaker, literal)).toBeUndefined();
  });

  it("is not learnt where the chat template ends no message of the user's", () => {
    const chatTemplate =
      "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content + eos_token }}{% else %}{{ '[INST] ' + m.content + ' [/INST]' }}{% endif %}{% endfor %}";
    const bracketed = createTokenizer({ ...speaker.files, chatTemplate });
    const style = promptStyle({}, { style: "chat" }, bracketed);
    expect(observationEndNotice(bracketed, style)).toMatch(/comes " \[\/INST\]", which does not/);
    expect(observationEndNotice(speaker, style)).toBeUndefined();
    const start = { ...view, firstObservation: "A kitchen.", observation: "A kitchen." };
    const asked = encodePrompt(bracketed, style, style.render(start));
    const ids = encodeResponse(bracketed, style, "look");
    const acted = appendResponse(asked, { ids });
    const response = "look";
    const step = appendObservation(acted, bracketed, style, "It is empty.", false, { response });
    expect(bracketed.decode(step.ids)).toMatch(/\[INST\] It is empty\.$/);
    const last = { response, action: response, observation: "It is empty." };
    const next = nextPrompt(bracketed, style, step, last)!;
    expect(bracketed.decode(next.ids)).toMatch(/\[INST\] It is empty\. \[\/INST\]$/);
    expect(next.ids.slice(0, step.ids.length)).toEqual(step.ids);
    expect(next.ids).toEqual(bracketed.encode(bracketed.decode(next.ids)));
  });

  it("cannot be set for a plugin's style, which says itself what is predicted", () => {
    registerPromptStyle({ name: "own-end", title: "own", create: () => ({ ...compact }) });
    const own = promptStyle({}, { style: "own-end" as "full" });
    expect(own.observationEnd).toBe(compact.observationEnd);
    expect(own.render(view)).toEqual(compact.render(view));
    const options = { style: "own-end" as "full", observationEnd: false };
    expect(() => promptStyle({}, options)).toThrow(
      /observationEnd has no meaning in the style own/,
    );
    expect(promptStyle({}, { style: "own-end" as "full", tokens: "pieces" }).tokens).toBe("pieces");
  });
});

describe("a step as a sequence", () => {
  it("has a span for every piece, in order", () => {
    const prompt = encodePrompt(plain, compact, compact.render(view));
    const response = encodeResponse(plain, compact, "open fridge 1");
    const logprobs = response.map(() => -0.5);
    const acted = appendResponse(prompt, { ids: response, logprobs, sampledLogprobs: logprobs });
    const step = appendObservation(acted, plain, compact, "It is empty.", false);
    expectCovered(step);
    expect(
      step.spans.map(({ kind, origin, start, end }) => [
        kind,
        origin,
        plain.decode(step.ids.slice(start, end)),
      ]),
    ).toEqual([
      ["prompt", "template", "<|goal|>"],
      ["prompt", "task", "put a cool plum on the shelf"],
      ["prompt", "template", "<|see|>"],
      ["prompt", "observation", "A kitchen. <|end|>"],
      ["prompt", "template", "<|do|>"],
      ["action", "policy", "open fridge 1<|see|>"],
      ["observation", "observation", "It is empty."],
      ["observation", "template", "<|do|>"],
    ]);
    expect(step.logprobs).toHaveLength(4);
    expect(step).not.toHaveProperty("temperature");
    const cold = appendResponse(prompt, { ids: response, logprobs, temperature: 0.5 });
    expect(appendObservation(cold, plain, compact, "", false).temperature).toBe(0.5);
    expect(step.ids.filter((id) => id === plain.endId)).toEqual([]);
  });

  it("in the compact style is, id for id, the beginning of the next step's prompt", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 8 }), {
          minLength: 1,
          maxLength: 4,
        }),
        (answers) => {
          let now = view;
          let sequence = encodePrompt(plain, compact, compact.render(now));
          for (const observation of answers) {
            sequence = appendResponse(sequence, { ids: encodeResponse(plain, compact, "look") });
            sequence = appendObservation(sequence, plain, compact, observation, false);
            const steps = [...now.steps, { action: "look", observation }];
            now = { ...now, steps, observation, index: steps.length };
          }
          expect(sequence.ids).toEqual(encodePrompt(plain, compact, compact.render(now)).ids);
        },
      ),
      { numRuns: 30 },
    );
  });

  it("keeps sampled ids as they are, even if encoding the text would give others", () => {
    const letters = [..."look"].flatMap((letter) => plain.encode(letter));
    expect(letters).not.toEqual(plain.encode("look"));
    const prompt = encodePrompt(plain, compact, compact.render(view));
    const acted = appendResponse(prompt, { ids: letters });
    expect(acted.ids.slice(-letters.length)).toEqual(letters);
    expect(decodeResponse(plain, compact, letters)).toBe("look");
  });

  it("does not mistake part of a text for the end of a response", () => {
    const ids = encodeResponse(plain, compact, "say <|see|> now");
    expect(ids.filter((id) => id === responseEndId(plain, compact))).toHaveLength(1);
    expect(decodeResponse(plain, compact, ids)).toBe("say <|see|> now");
  });

  it("puts prose into the chat template, around the pieces", () => {
    const tokenizer = chatting("[user]{{ messages[0].content }}[assistant]");
    const pieces = full.render(view);
    const sequence = encodePrompt(tokenizer, full, pieces);
    expectCovered(sequence);
    expect(tokenizer.decode(sequence.ids)).toBe(`[user]${promptText(pieces)}[assistant]`);
    expect(sequence.spans.at(0)?.origin).toBe("template");
    expect(encodePrompt(tokenizer, compact, compact.render(view)).ids).toEqual(
      encodePrompt(plain, compact, compact.render(view)).ids,
    );
    expect(encodeResponse(tokenizer, full, "x").at(-1)).toBe(tokenizer.endId);
  });

  it("parts a system text from what follows, where there is no chat template", () => {
    const style = promptStyle(housePrompt, {
      style: "full",
      template: "[system]\nBe brief.\n[step]\nThe task: {task_description}",
    });
    const pieces = style.render(view);
    const { ids } = encodePrompt(plain, style, pieces);
    expect(plain.decode(ids)).toBe(`Be brief.\n\nThe task: ${view.goal}`);
  });

  it("ends at any of a chat model's end tokens, which is not part of the text", () => {
    const other = plain.id("<|do|>")!;
    const generation = JSON.stringify({ eos_token_id: [other] });
    const tokenizer = createTokenizer({ ...plain.files, generation });
    expect(responseEndIds(tokenizer, full)).toEqual([plain.endId, other]);
    for (const end of [plain.endId!, other])
      expect(decodeResponse(tokenizer, full, [...plain.encode("look"), end])).toBe("look");
    // The compact style has its own end token.
    expect(responseEndIds(tokenizer, compact)).toEqual([responseEndId(plain, compact)]);
    expect(encodeResponse(tokenizer, full, "look").at(-1)).toBe(plain.endId);
  });

  it("rejects a template that loses the message, and log-probabilities that do not fit", () => {
    const tokenizer = chatting("[user]{{ messages[0].content | upper }}");
    expect(() => encodePrompt(tokenizer, full, full.render(view))).toThrow(
      /exactly once and unchanged/,
    );
    const twice = chatting("[user]{{ messages[0].content }}{{ messages[0].content }}");
    expect(() => encodePrompt(twice, full, full.render(view))).toThrow(/exactly once/);
    expect(() => appendResponse({ ids: [], spans: [] }, { ids: [1, 2], logprobs: [0] })).toThrow(
      /2 tokens came with 1 logprobs/,
    );
  });

  it("names the missing token if a tokenizer does not fit the style", () => {
    const bare = createTokenizer({
      tokenizer: JSON.stringify({ model: { type: "BPE", vocab: { a: 0 }, merges: [] } }),
    });
    expect(() => responseEndId(bare, compact)).toThrow(/<\|see\|>, which is not a token/);
    expect(() => responseEndId(bare, full)).toThrow(/has none \(eos_token/);
  });
});
