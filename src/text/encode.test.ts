import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { worldTexts } from "../../tests/helpers/small-world.js";
import { housePrompt } from "../envs/household/prompt.js";
import {
  appendObservation,
  appendResponse,
  decodeResponse,
  encodePrompt,
  encodeResponse,
  responseEndId,
  responseEndIds,
} from "./encode.js";
import { type PromptView, promptStyle, promptText } from "./prompt.js";
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
