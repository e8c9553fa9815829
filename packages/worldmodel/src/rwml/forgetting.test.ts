import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "@pawl/core/engine/engine.js";
import { writeCheckpoint } from "@pawl/models/weights/checkpoint.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { tensorSpecs } from "@pawl/models/weights/tensor-names.js";
import { afterAll, expect, it } from "vitest";
import {
  chosenAnswers,
  meanLoss,
  ownQuestions,
  readQuestions,
  textSequences,
  weightChange,
} from "./forgetting.js";
import { tokenizer } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-forgetting-"));
afterAll(() => rmSync(folder, { recursive: true }));

const config: ModelConfig = {
  ...{ architecture: "LlamaForCausalLM", vocabularySize: 3, hiddenSize: 2, layers: 1 },
  ...{ heads: 1, kvHeads: 1, headSize: 2, mlpSize: 2, maxContext: 8, ropeTheta: 10_000 },
  ...{ normEps: 1e-5, tiedEmbeddings: true, qkvBias: false },
};

/** Weights that are all 2, and those of one tensor moved by a number. */
async function saved(name: string, moved: number, where: string): Promise<string> {
  const specs = tensorSpecs(config).filter(({ optional }) => !optional);
  const tensors = new Map(
    specs.map(({ name: tensor, shape }) => {
      const length = shape.reduce((product, size) => product * size, 1);
      const value = 2 + (tensor.includes(where) ? moved : 0);
      return [tensor, { shape, data: new Float32Array(length).fill(value) }];
    }),
  );
  const path = join(folder, name);
  await writeCheckpoint(path, config, tensors);
  return path;
}

it("measures how far weights moved, relative to where they began", async () => {
  const [start, end] = [await saved("start", 0, ""), await saved("end", 1, "embed")];
  const { all, tensors } = await weightChange(start, end);
  const [moved] = Object.entries(tensors).filter(([, change]) => change > 0);
  expect(moved![0]).toContain("embed");
  expect(moved![1]).toBeCloseTo(0.5, 6);
  const numbers = tensorSpecs(config)
    .filter(({ optional }) => !optional)
    .map(({ shape }) => shape.reduce((product, size) => product * size, 1));
  const total = numbers.reduce((sum, count) => sum + count, 0);
  // Six of the numbers moved by 1, and all of them were 2.
  expect(all).toBeCloseTo(Math.sqrt(6 / (4 * total)), 6);
  expect((await weightChange(start, start)).all).toBe(0);
});

it("takes the mean loss over targets only, and over all tokens but the first without any", async () => {
  const engine = {
    forward: async () => [{ logprobs: Float32Array.of(0, -1, -2, -6) }],
  } as unknown as Engine;
  const ids = [1, 2, 3, 4];
  expect(await meanLoss(engine, [{ ids, targets: Uint8Array.of(0, 1, 0, 1) }])).toBe(3.5);
  expect(await meanLoss(engine, [{ ids }])).toBe(3);
});

it("reads paragraphs from their beginning, up to the context", () => {
  const path = join(folder, "text.txt");
  writeFileSync(path, "Put a mug on a desk.\n\n\nThe drawer 1 is closed.\n");
  const [first, second, ...others] = textSequences(path, tokenizer, 4);
  expect(others).toEqual([]);
  const whole = tokenizer.encode("Put a mug on a desk.", { plain: true });
  expect(first!.ids).toEqual(whole.slice(0, 4));
  expect(tokenizer.decode(Array.from(second!.ids))).toMatch(/^The drawer/);
});

/** A token per character. */
const codes = { encode: (text: string) => [...text].map((c) => c.codePointAt(0)!) };

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
  expect(await chosenAnswers(fond("a"), codes, questions)).toEqual([1, 0]);
  expect(await chosenAnswers(fond("b"), codes, questions)).toEqual([2, 1]);
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
  const chosen = await chosenAnswers(fond("z"), codes, own);
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
