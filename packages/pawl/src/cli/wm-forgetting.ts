import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { engineChoice } from "@pawl/training/engines.js";
import { openSavedModel } from "@pawl/training/open-model.js";
import { findModel, type SavedModel } from "@pawl/training/saved-model.js";
import {
  chosenAnswers,
  meanLoss,
  ownQuestions,
  readQuestions,
  textSequences,
  weightChange,
} from "@pawl/worldmodel/rwml/forgetting.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { number, percent, table } from "./format.js";
import { print } from "./io.js";
import { finiteJson, writeResult } from "./wm-result.js";

/** `pawl wm forgetting`: what training made models forget. */
export const wmForgetting = defineCommand({
  name: "wm forgetting",
  summary: "how far models moved from their start, and what they still know",
  positionals: "MODEL…",
  details:
    "For the start and every MODEL: |w − w₀| / |w₀| of the weights, the loss per token of a text of yours, and the share of\nmultiple-choice questions answered right. Without --choices, forty easy questions that only show a model falling apart.",
  options: () =>
    z.strictObject({
      start: z.string().min(1).describe("the model that all of them were trained from"),
      text: z
        .string()
        .optional()
        .describe("text file whose loss is compared; paragraphs are separated by blank lines"),
      choices: z
        .string()
        .optional()
        .describe(
          'JSONL file of questions: {"question", "choices", "answer": place from 0} (default: our own forty)',
        ),
      engine: engineChoice,
      out: z.string().optional().describe("write the results to this JSON file"),
      json: z.boolean().default(false).describe("print the results as one line of JSON"),
    }),
  examples: [
    ["pawl wm forgetting --start runs/warm runs/rwml runs/rl", "RWML and RL from the same start"],
    [
      "pawl wm forgetting --start FILE.gguf runs/… --text book.txt --choices questions.jsonl",
      "with text and questions of your own",
    ],
  ],
  async run({ config, positionals, io, signal }) {
    if (positionals.length === 0)
      throw new ConfigError("pawl wm forgetting: name the trained models: MODEL…");
    const questions = config.choices === undefined ? ownQuestions() : readQuestions(config.choices);
    const start = await findModel(config.start, fetchingOf(io, signal));
    const results: Awaited<ReturnType<typeof measured>>[] = [];
    for (const name of [config.start, ...positionals]) {
      signal.throwIfAborted();
      const saved = name === config.start ? start : await findModel(name, fetchingOf(io, signal));
      results.push(await measured(name, saved, start, { ...config, questions }));
    }
    writeResult(config.out, { questions: questions.length, models: results });
    if (config.json) print(io, finiteJson({ questions: questions.length, models: results }));
    else {
      const rows = results.map(({ model, moved, loss, right, interval }) => [
        model,
        number(moved ?? Number.NaN, 4),
        ...(config.text === undefined ? [] : [number(loss ?? Number.NaN, 4)]),
        percent(right),
        `${(100 * interval[0]).toFixed(1)} – ${percent(interval[1])}`,
      ]);
      const text = config.text === undefined ? [] : ["loss of text"];
      const header = ["model", "weights moved", ...text, `${questions.length} questions`, "95 %"];
      for (const line of table(header, rows)) print(io, line);
    }
    return exitCodes.done;
  },
});

async function measured(
  model: string,
  saved: SavedModel,
  start: SavedModel,
  {
    text,
    questions,
    engine: choice,
  }: {
    readonly text?: string | undefined;
    readonly questions: ReturnType<typeof ownQuestions>;
    readonly engine: z.output<typeof engineChoice>;
  },
) {
  // Weights that stay on a server cannot be compared here.
  const here = [start, saved].every(({ weights }) => existsSync(join(weights, "config.json")));
  const moved = here ? (await weightChange(start.weights, saved.weights)).all : undefined;
  const { engine, tokenizer } = await openSavedModel(saved, choice);
  try {
    const { maxContext } = engine.capabilities;
    const loss =
      text === undefined
        ? undefined
        : await meanLoss(engine, textSequences(text, tokenizer, maxContext));
    const chosen = await chosenAnswers(engine, tokenizer, questions);
    const successes = questions.filter(({ answer }, i) => chosen[i] === answer).length;
    const episodes = questions.length;
    const interval = successInterval({ successes, episodes });
    return { model, moved, loss, right: successes / episodes, interval };
  } finally {
    await engine.dispose();
  }
}
