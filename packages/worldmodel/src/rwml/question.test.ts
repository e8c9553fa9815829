import { housePrompt } from "@pawl/core/envs/household/prompt.js";
import { encodePrompt } from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { createTokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { describe, expect, it } from "vitest";
import { answerSequence } from "./filter.js";
import { worldQuestion } from "./question.js";
import { compact, episode, tokenizer } from "./testing.js";
import { historyOf, isLast, nameOf, nextStateOf, tripletsOf } from "./triplet.js";

const triplets = tripletsOf([episode]);

describe("triplets", () => {
  it("are the steps of complete episodes, each with what was known before it", () => {
    expect(triplets.map(nameOf)).toEqual(["train/7#2.1.0", "train/7#2.1.1", "train/7#2.1.2"]);
    expect(tripletsOf([{ ...episode, stop: "broken" }])).toEqual([]);
    expect(historyOf(triplets[1]!)).toMatchObject({
      observation: "The drawer 1 is closed.",
      index: 1,
      admissible: undefined,
    });
    expect(historyOf(triplets[1]!).steps).toHaveLength(1);
    expect(triplets.map(isLast)).toEqual([false, false, true]);
    expect(isLast(tripletsOf([{ ...episode, stop: "step-limit" }])[2]!)).toBe(false);
  });
});

describe("in the compact style", () => {
  const question = worldQuestion(tokenizer, compact);

  it("question and answer are the beginning of the policy's next prompt, token for token", () => {
    for (const [i, triplet] of triplets.entries()) {
      const stream = [...question.ask(triplet).ids, ...question.answer(triplet)];
      const next = triplets[i + 1];
      if (next === undefined) continue;
      const prompt = encodePrompt(tokenizer, compact, compact.render(historyOf(next))).ids;
      expect(stream).toEqual(prompt);
    }
  });

  it("parses the correct answer, the last one with a different end", () => {
    for (const triplet of triplets) {
      const { text } = question.read(question.answer(triplet));
      expect(text).toBe(nextStateOf(triplet));
    }
    const ends = triplets.map((triplet) => question.answer(triplet).at(-1));
    expect(ends).toEqual([tokenizer.id("<|do|>"), tokenizer.id("<|do|>"), tokenizer.id("<|end|>")]);
  });

  it("reports answers that are empty or unended", () => {
    const end = tokenizer.id("<|do|>")!;
    expect(question.read([end])).toEqual({ response: "", text: "", problem: "empty" });
    const words = tokenizer.encode("The drawer 1", { plain: true });
    expect(question.read(words)).toMatchObject({ text: "The drawer 1", problem: "unended" });
  });

  it("teaches the answer and nothing else", () => {
    const { ids, start, targets, inputs } = answerSequence(question, triplets[1]!);
    expect(start).toBe(question.ask(triplets[1]!).ids.length);
    expect(Array.from(targets)).toEqual(ids.slice(start).map(() => 1));
    expect(Array.from(inputs.weight!)).toEqual(Array.from(targets));
  });

  it("needs a tokenizer with its markers", () => {
    const bare = createTokenizer({
      tokenizer: JSON.stringify({ model: { type: "BPE", vocab: { a: 0 }, merges: [] } }),
    });
    expect(() => worldQuestion(bare, compact)).toThrow(/<\|do\|>, which is not a token/);
  });
});

describe("in the chat style", () => {
  const speaker = buildTokenizer(
    ["open drawer 1", nextStateOf(triplets[0]!), "Put an apple here."],
    {
      chat: true,
    },
  );
  const style = promptStyle(housePrompt, { style: "chat" }, speaker);
  const question = worldQuestion(speaker, style);

  it("question and answer are the beginning of the policy's next prompt, token for token", () => {
    for (const [i, triplet] of triplets.slice(0, -1).entries()) {
      const stream = [...question.ask(triplet).ids, ...question.answer(triplet)];
      const next = historyOf(triplets[i + 1]!);
      const prompt = encodePrompt(speaker, style, style.render(next)).ids;
      expect(prompt.slice(0, stream.length)).toEqual(stream);
    }
  });

  it("asks with everything before the answer, and nothing of it", () => {
    const { ids, spans } = question.ask(triplets[0]!);
    expect(spans.every(({ kind }) => kind === "prompt")).toBe(true);
    expect(spans.at(-1)!.end).toBe(ids.length);
    expect(speaker.decode(ids)).not.toContain(nextStateOf(triplets[0]!));
  });

  it("parses the correct answer, and reports one that is empty or unended", () => {
    for (const triplet of triplets)
      expect(question.read(question.answer(triplet)).text).toBe(nextStateOf(triplet));
    expect(question.read([speaker.endId!])).toMatchObject({ text: "", problem: "empty" });
    const words = speaker.encode("The drawer 1", { plain: true });
    expect(question.read(words)).toMatchObject({ text: "The drawer 1", problem: "unended" });
  });

  it("ends an answer as the template ends a message, whichever token that is", () => {
    const { config = "{}" } = speaker.files;
    const template = JSON.parse(config).chat_template.replace("eos_token", "'<|note|>'");
    const end = speaker.id("<|note|>")!;
    const other = createTokenizer({
      ...speaker.files,
      chatTemplate: template,
      generation: JSON.stringify({ eos_token_id: [speaker.endId, end] }),
    });
    const asked = worldQuestion(other, promptStyle(housePrompt, { style: "chat" }, other));
    expect(asked.answer(triplets[0]!).at(-1)).toBe(end);
    expect(asked.stop).toContainEqual([end]);
    expect(asked.read(asked.answer(triplets[0]!)).text).toBe(nextStateOf(triplets[0]!));
  });

  it("refuses a template with words after an observation, whose end could not be sampled", () => {
    const framed = { ...style, around: ["", "\nWhat now?"] as const };
    expect(() => worldQuestion(speaker, framed)).toThrow(/followed by "\\nWhat now\?"/);
  });
});

describe("in the full style", () => {
  const { tokenizer: files, config = "{}" } = tokenizer.files;
  const ended = { ...JSON.parse(config), eos_token: "<|end|>" };
  const speaker = createTokenizer({ tokenizer: files, config: JSON.stringify(ended) });
  const style = promptStyle(housePrompt, { style: "full" });
  const question = worldQuestion(speaker, style);
  const end = speaker.endId!;
  const read = (text: string, ...more: number[]) =>
    question.read([...speaker.encode(text, { plain: true }), ...more]);

  it("asks in prose, with the history and the action, to reason first", () => {
    const text = speaker.decode(question.ask(triplets[1]!).ids);
    for (const part of [episode.goal, episode.firstObservation, "open drawer 1", "<think>"]) {
      expect(text).toContain(part);
    }
    expect(text).not.toContain("mug 1");
    expect(text).toContain(
      `Observation 1:\n${episode.firstObservation}\nAction 1:\ngo to drawer 1\n\nObservation 2:\nThe drawer 1 is closed.\nAction 2:\nopen drawer 1\n\nWhat does`,
    );
  });

  it("takes the next state from the last tags", () => {
    const answer =
      "<think>a <next_state> comes</think><next_state> The drawer 1 is closed. </next_state>";
    expect(read(answer, end)).toMatchObject({ text: "The drawer 1 is closed." });
    expect(read(answer, end).problem).toBeUndefined();
    expect(read("<think>so", end)).toMatchObject({ text: "", problem: "malformed" });
    expect(read("<next_state></next_state>", end)).toMatchObject({ problem: "empty" });
    expect(read(answer)).toMatchObject({ problem: "unended" });
    expect(question.read(question.answer(triplets[0]!)).text).toBe("The drawer 1 is closed.");
  });
});
