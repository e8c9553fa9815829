import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "@pawl/core/engine/engine.js";
import { expect, it } from "vitest";
import { chosenAnswers, ownQuestions, readQuestions } from "./choices.js";

/** A token per character. */
const tokenizer = { encode: (text: string) => [...text].map((c) => c.codePointAt(0)!) };

/** An engine that finds a letter probable: a stand-in whose answers are known. */
const fond = (letter: string): Pick<Engine, "forward"> => ({
  forward: async (sequences) =>
    sequences.map(({ ids }) => ({
      logprobs: Float32Array.from(ids, (id) => (id === letter.codePointAt(0) ? -0.1 : -5)),
    })) as never,
});

it("takes the answer that is most probable per token, whatever its length", async () => {
  const questions = [
    { question: "aaaa?", choices: ["b", "baaaaa", "bbb"], answer: 1 },
    { question: "?", choices: ["aa", "b"], answer: 0 },
  ];
  expect(await chosenAnswers(fond("a"), tokenizer, questions)).toEqual([1, 0]);
  expect(await chosenAnswers(fond("b"), tokenizer, questions)).toEqual([2, 1]);
});

it("has questions of its own whose right answers are not all at one place", async () => {
  const own = ownQuestions();
  expect(own).toHaveLength(40);
  expect(new Set(own.map(({ answer }) => answer))).toEqual(new Set([0, 1, 2, 3]));
  expect(own[1]).toEqual({
    question: "What is the capital of Japan?",
    choices: ["Seoul", "Tokyo", "Hanoi", "Delhi"],
    answer: 1,
  });
  for (const { choices } of own) expect(new Set(choices).size).toBe(4);
  // More than one batch of questions keeps its order.
  const chosen = await chosenAnswers(fond("z"), tokenizer, own);
  expect(chosen).toHaveLength(40);
});

it.each([
  ["", /has no questions/],
  ["nonsense", /:1: not JSON/],
  ['{"question":"","choices":["b","c"],"answer":0}', /question/],
  ['{"question":"a","choices":["b","c"],"answer":-1}', /answer/],
  ['\n{"question":"a","choices":["b"],"answer":0}', /:2: .*\s.*choices/],
  ['{"question":"a","choices":["b","c"],"answer":2}', /answer is 2, and there are 2 choices/],
])("refuses %j", (content, message) => {
  const path = join(mkdtempSync(join(tmpdir(), "pawl-choices-")), "questions.jsonl");
  writeFileSync(path, content);
  expect(() => readQuestions(path)).toThrow(message);
});

it("reads questions, one a line, whose right answer may be the first", () => {
  const path = join(mkdtempSync(join(tmpdir(), "pawl-choices-")), "questions.jsonl");
  const asked = { question: "What is it?", choices: ["b", "c"], answer: 0 };
  writeFileSync(path, `${JSON.stringify(asked)}\n`);
  expect(readQuestions(path)).toEqual([asked]);
});
