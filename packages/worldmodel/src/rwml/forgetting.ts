/**
 * Forgetting: how far the weights moved from where they started, and how well old text is still
 * predicted.
 */
import type { Engine, TargetSequence } from "@pawl/core/engine/engine.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { openCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { z } from "zod";

// Questions with several answers, of which a model finds one the most probable: a small check of
// whether it still knows what it knew. An answer's probability is the mean over its tokens, so that
// long answers are not at a disadvantage.

/**
 * Forty easy questions of general knowledge, written for this package: enough to see a model fall
 * apart, not to rank models. The first choice is the right one.
 */
const generalChoices: readonly (readonly [
  question: string,
  ...choices: readonly [string, string, string, string],
])[] = [
  ["What is the capital of France?", "Paris", "Rome", "Oslo", "Lima"],
  ["What is the capital of Japan?", "Tokyo", "Seoul", "Hanoi", "Delhi"],
  ["What is the capital of Italy?", "Rome", "Milan", "Athens", "Vienna"],
  ["What is the capital of Egypt?", "Cairo", "Nairobi", "Tunis", "Accra"],
  ["On which continent is Brazil?", "South America", "Europe", "Asia", "Africa"],
  ["On which continent is Kenya?", "Africa", "Europe", "Asia", "North America"],
  ["Which planet do we live on?", "Earth", "Mars", "Venus", "Jupiter"],
  ["Which planet is the largest of the solar system?", "Jupiter", "Mars", "Earth", "Mercury"],
  ["What does the Earth move around?", "the Sun", "the Moon", "Mars", "Venus"],
  ["How many days are in a week?", "seven", "five", "nine", "twelve"],
  ["How many months are in a year?", "twelve", "ten", "eight", "twenty"],
  ["How many legs does a spider have?", "eight", "six", "four", "two"],
  ["How many legs does a dog have?", "four", "two", "six", "eight"],
  ["What is two plus three?", "five", "four", "nine", "seven"],
  ["What is ten minus four?", "six", "three", "eight", "two"],
  ["What is three times three?", "nine", "six", "twelve", "five"],
  ["What is half of twenty?", "ten", "five", "forty", "two"],
  ["What colour is grass?", "green", "purple", "black", "orange"],
  ["What colour is snow?", "white", "red", "green", "brown"],
  ["What colour is a ripe banana?", "yellow", "blue", "black", "grey"],
  ["What is ice made of?", "water", "sand", "iron", "wood"],
  ["What do bees make?", "honey", "milk", "bread", "wool"],
  ["What do cows give?", "milk", "honey", "silk", "oil"],
  ["Which animal barks?", "a dog", "a cow", "a fish", "a snake"],
  ["Which animal can fly?", "an eagle", "a horse", "a whale", "a pig"],
  ["Where do fish live?", "in water", "in trees", "in caves", "in the sky"],
  ["What is the opposite of hot?", "cold", "wet", "tall", "loud"],
  ["What is the opposite of up?", "down", "left", "far", "old"],
  ["What is the opposite of empty?", "full", "small", "open", "new"],
  ["Which season comes after winter?", "spring", "autumn", "night", "morning"],
  ["Which day comes after Monday?", "Tuesday", "Friday", "Sunday", "Saturday"],
  ["Which month comes after June?", "July", "March", "December", "January"],
  ["What do you use to cut paper?", "scissors", "a spoon", "a pillow", "a cup"],
  ["What do you use to write?", "a pen", "a shoe", "a plate", "a lamp"],
  ["What do you wear on your feet?", "shoes", "gloves", "a hat", "a scarf"],
  ["With which organ do we see?", "the eyes", "the ears", "the nose", "the hands"],
  ["Which organ pumps blood?", "the heart", "the liver", "the skin", "the stomach"],
  ["Which gas do people need to breathe?", "oxygen", "helium", "neon", "argon"],
  ["Which language is spoken in Spain?", "Spanish", "Chinese", "Arabic", "Hindi"],
  ["Who treats sick people?", "a doctor", "a pilot", "a baker", "a farmer"],
];

const question = z.strictObject({
  question: z.string().min(1),
  choices: z.array(z.string().min(1)).min(2),
  /** The place of the right one, from 0. */
  answer: z.int().min(0),
});

/** A question, its choices, and the place of the right one. */
type ChoiceQuestion = z.output<typeof question>;

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

/**
 * |w − w₀| / |w₀|, of all weights together and of each tensor; infinite if a tensor started at 0.
 */
export interface WeightChange {
  readonly all: number;
  readonly tensors: Readonly<Record<string, number>>;
}

/** How far the weights in one checkpoint folder are from those in another, relative to the latter. */
export async function weightChange(before: string, after: string): Promise<WeightChange> {
  const start = await openCheckpoint(before);
  const end = await openCheckpoint(after);
  const tensors: Record<string, number> = {};
  let allMoved = 0;
  let allStart = 0;
  for (const { name } of start.tensors) {
    const [old, now] = [await start.read(name), await end.read(name)];
    if (old.length !== now.length) {
      throw new UserError(
        `${after}: tensor ${name} has ${now.length} numbers, in ${before} it has ${old.length}: these are two different models.`,
      );
    }
    let moved = 0;
    let length = 0;
    for (let i = 0; i < old.length; i++) {
      moved += (now[i]! - old[i]!) ** 2;
      length += old[i]! ** 2;
    }
    tensors[name] = relative(moved, length);
    allMoved += moved;
    allStart += length;
  }
  return { all: relative(allMoved, allStart), tensors };
}

const relative = (moved: number, length: number): number =>
  moved === 0 ? 0 : Math.sqrt(moved / length);

/** The mean of −log p over the targets of some sequences; NaN if there are none. */
export async function meanLoss(
  engine: Engine,
  sequences: readonly TargetSequence[],
): Promise<number> {
  let loss = 0;
  let count = 0;
  for (const [i, { logprobs }] of (await engine.forward(sequences)).entries()) {
    const { targets } = sequences[i]!;
    for (let t = 1; t < logprobs.length; t++) {
      if (targets !== undefined && !targets[t]) continue;
      loss -= logprobs[t]!;
      count++;
    }
  }
  return loss / count;
}

/** The paragraphs of a text file as sequences, each truncated to the model's context. */
export function textSequences(
  path: string,
  tokenizer: Tokenizer,
  maxContext: number,
): readonly TargetSequence[] {
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    throw new UserError(`the held-out text cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const sequences = text
    .split(/\n\s*\n/)
    .map((paragraph) => ({
      ids: tokenizer.encode(paragraph.trim(), { plain: true }).slice(0, maxContext),
    }))
    .filter(({ ids }) => ids.length > 1);
  if (sequences.length === 0) {
    throw new UserError(`${path} has no text: expected paragraphs separated by empty lines.`);
  }
  return sequences;
}
