/**
 * Questions with several answers, of which a model finds one the most probable: a small check of
 * whether it still knows what it knew. An answer's probability is the mean over its tokens, so that
 * long answers are not at a disadvantage.
 */

import type { Engine } from "@pawl/core/engine/engine.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { z } from "zod";
import { generalChoices } from "./general-choices.js";

const question = z.strictObject({
  question: z.string().min(1),
  choices: z.array(z.string().min(1)).min(2),
  /** The place of the right one, from 0. */
  answer: z.int().min(0),
});

/** A question, its choices, and the place of the right one. */
export type ChoiceQuestion = z.output<typeof question>;

/** Our own questions; the place of the right choice changes from one to the next. */
export function ownQuestions(): readonly ChoiceQuestion[] {
  return generalChoices.map(([asked, ...all], at) => {
    const answer = at % all.length;
    const [right, ...wrong] = all;
    return { question: asked, choices: wrong.toSpliced(answer, 0, right!), answer };
  });
}

/** The questions of a file: one JSON object per line, `{"question", "choices", "answer"}`. */
export function readQuestions(path: string): readonly ChoiceQuestion[] {
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    throw new UserError(`the questions cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const questions = text.split("\n").flatMap((line, at) => {
    if (line.trim() === "") return [];
    const where = `${path}:${at + 1}`;
    const parsed = question.safeParse(jsonOf(line, where));
    if (!parsed.success) throw new UserError(`${where}: ${z.prettifyError(parsed.error)}`);
    const { answer, choices } = parsed.data;
    if (answer >= choices.length)
      throw new UserError(
        `${where}: answer is ${answer}, and there are ${choices.length} choices, counted from 0`,
      );
    return [parsed.data];
  });
  if (questions.length === 0)
    throw new UserError(`${path} has no questions: expected one JSON object per line`);
  return questions;
}

function jsonOf(line: string, where: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new UserError(`${where}: not JSON: expected {"question", "choices", "answer"}`);
  }
}

/** Questions that go to the engine together. */
const TOGETHER = 16;

/** The place of the choice that the model finds most probable, for every question. */
export async function chosenAnswers(
  engine: Pick<Engine, "forward">,
  tokenizer: Pick<Tokenizer, "encode">,
  questions: readonly ChoiceQuestion[],
): Promise<readonly number[]> {
  const chosen: number[] = [];
  for (let from = 0; from < questions.length; from += TOGETHER) {
    const some = questions.slice(from, from + TOGETHER);
    const sequences = some.flatMap(({ question: asked, choices }) => {
      const prompt = tokenizer.encode(`Question: ${asked}\nAnswer:`, { plain: true });
      return choices.map((choice) => {
        const ids = [...prompt, ...tokenizer.encode(` ${choice}`, { plain: true })];
        return { ids, targets: new Uint8Array(ids.length).fill(1, prompt.length) };
      });
    });
    const results = (await engine.forward(sequences)).map(({ logprobs }, i) => {
      const start = sequences[i]!.targets.indexOf(1);
      const answer = logprobs.subarray(start);
      return answer.reduce((sum, logprob) => sum + logprob, 0) / answer.length;
    });
    let at = 0;
    for (const { choices } of some) {
      const scores = results.slice(at, at + choices.length);
      chosen.push(scores.indexOf(Math.max(...scores)));
      at += choices.length;
    }
  }
  return chosen;
}
