import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { agentPolicy } from "@pawl/agents/agent-policy.js";
import { createTeacher, type Teacher } from "@pawl/agents/teacher.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { chatEndpointOptions } from "@pawl/core/envs/chat-endpoint.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { play } from "@pawl/core/rollout/rollout.js";
import { createTally, type Tally } from "@pawl/core/rollout/tally.js";
import { recordRollout } from "@pawl/core/runs/record-rollout.js";
import { defaultRunFolder } from "@pawl/core/runs/run-folder.js";
import { promptOptions, promptStyle } from "@pawl/core/text/prompt.js";
import { evaluationTasks, modelPolicy } from "@pawl/core/train/evaluate.js";
import { requireConsent } from "@pawl/core/trust/consent.js";
import { address } from "@pawl/core/trust/reach.js";
import { checkAgentPrompt } from "@pawl/training/checks.js";
import { shuffleOption } from "@pawl/training/config.js";
import { engineOptions } from "@pawl/training/engines.js";
import { openModel } from "@pawl/training/open-model.js";
import { findModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import { agentBase } from "./agent-option.js";
import { defineCommand, exitCodes, type Peek } from "./command.js";
import { envOptions } from "./env-options.js";
import { evaluationTable } from "./evaluation-table.js";
import { fetchingOf } from "./fetching.js";
import { number } from "./format.js";
import { print, warn } from "./io.js";
import { rolloutProgress } from "./rollout-progress.js";

const count = z.int().min(1);
const { baseUrl, ...endpoint } = chatEndpointOptions.shape;
const teacherUrl = z.url({
  protocol: /^https?$/,
  error: ({ code }) =>
    code === "invalid_format"
      ? "expected the base URL of an API, such as http://localhost:8000/v1 (a run or a model's folder scores what the student itself writes instead: pawl train --distillation.teacher)"
      : undefined,
});
const teacherOptions = z.strictObject({
  address: address(teacherUrl).describe(baseUrl.description!),
  ...endpoint,
});

const options = (peek: Peek) =>
  z.strictObject({
    env: envOptions(peek),
    teacher: teacherOptions.describe("the stronger model"),
    student: z
      .string()
      .describe(
        "the model that is to learn, in whose chat template and tokens is recorded: a model folder, a .gguf file, a run, a hub id or pypi:NAME",
      ),
    baseline: z
      .boolean()
      .default(false)
      .describe("let the student do the same tasks, greedily and unrecorded, for the card"),
    prices: z
      .array(z.number().min(0))
      .length(2)
      .optional()
      .describe("the teacher's prices of a million tokens read and written, for its cost"),
    engine: engineOptions,
    maxTokens: count.default(256).describe("maximum length of an answer in the student's tokens"),
    split: z.string().default("train").describe("split to take tasks from"),
    tasks: count.optional().describe("maximum number of tasks (default: all)"),
    shuffle: shuffleOption,
    trials: count.default(1).describe("attempts at each task; several need a temperature"),
    minReturn: z
      .number()
      .optional()
      .describe("count episodes worth this much as good enough (default: the largest reward)"),
    prompt: promptOptions().prefault({}),
    stepLimit: count.optional().describe("maximum calls per episode (default: the agent's limit)"),
    concurrency: count.default(8).describe("episodes played concurrently"),
    seed: z.int().min(0).default(0).describe("random seed"),
    out: z.string().optional().describe("run folder to create (default: a new one in runs/)"),
  });

/** `pawl distill`: a stronger model runs an agent, to be imitated by another. */
export const distill = defineCommand({
  name: "distill",
  summary: "run your agent with a stronger model, and record it for another model to imitate",
  positionals: "FILE",
  details:
    "The teacher answers in the student's place, behind any server of OpenAI's chat completions. Every episode is recorded\nin the student's tokens; pawl train imitates those that are good enough. Episodes that the teacher's server breaks count\nin no rate and are not imitated.",
  takesPlugin: true,
  takesEnv: true,
  options,
  base: (given) => agentBase(given, "taught"),
  examples: [
    [
      "pawl distill ./agent.ts --teacher https://HOST/v1 --teacher.model NAME --student MODEL",
      "record each training task once; the key is in OPENAI_API_KEY",
    ],
    [
      "pawl distill ./agent.ts … --teacher.api-key-variable MY_KEY --prices 2.5,10 --baseline",
      "another key; what it cost, and how good the student is",
    ],
  ],
  async run({ config, io, signal }) {
    const { out, baseline, prices, ...settings } = config;
    const { seed, stepLimit, maxTokens, trials, concurrency, split } = settings;
    const environment = openEnvironment({ ...settings.env, name: String(settings.env.name) });
    if (!isAgentEnvironment(environment))
      throw new ConfigError(
        `pawl distill runs an agent's program, and ${environment.name} is a world: name the agent's file, or record it with pawl rollout --policy chat`,
      );
    checkAgentPrompt(settings.prompt);
    requireConsent(teacherOptions, settings.teacher, "teacher");
    const { address: url, ...rest } = settings.teacher;
    const { minReturn = environment.maxReturn } = settings;
    if (minReturn > environment.maxReturn)
      throw new ConfigError(
        `minReturn is ${minReturn}, and the agent's largest reward is ${environment.maxReturn}`,
      );
    const tasks = evaluationTasks(environment, split, settings);
    const folder = out ?? defaultRunFolder("distill", environment.name);
    const { weights, tokenizer } = await findModel(settings.student, fetchingOf(io, signal));
    const model = await openModel({
      start: { folder: weights, tokenizer },
      engine: settings.engine,
    });
    const style = promptStyle(environment.prompt, settings.prompt, model.tokenizer);
    const teacher = createTeacher({ ...rest, baseUrl: url });
    const common = {
      ...{ environment, tasks, style, seed, stepLimit, signal },
      onProblem: (message: string) => warn(io, message),
    };
    let progress = rolloutProgress(io, tasks.length, trials);
    let kept = 0;
    try {
      const policy = agentPolicy({
        ...{ environment, callForm: style.callForm, tokens: style, batch: 1 },
        ...{ engine: model.engine, tokenizer: model.tokenizer, author: teacher.author },
        sampling: { maxTokens, temperature: 1 },
      });
      const taught = await recordRollout(
        {
          ...{ ...common, ...progress, policy, groupSize: trials, concurrency },
          onEpisode(episode) {
            if (episode.stop !== "broken" && episode.return >= minReturn) kept++;
            progress.onEpisode(episode);
          },
        },
        { folder, config: settings, kind: "distill" },
      );
      progress.end();
      let own: Tally | undefined;
      if (baseline) {
        own = createTally();
        progress = rolloutProgress(io, tasks.length, 1);
        const sampling = { maxTokens, temperature: 0 };
        const student = modelPolicy({ ...model, environment, style, sampling });
        await play({
          ...{ ...common, ...progress, policy: student, groupSize: 1 },
          onEpisode(episode) {
            own!.add(episode);
            progress.onEpisode(episode);
          },
        });
        progress.end();
      }
      const card = [
        `the teacher, ${rest.model}, on ${tasks.length} tasks of ${split}:`,
        ...evaluationTable(taught),
        ...(own === undefined
          ? []
          : ["", `the student, ${settings.student}, greedily:`, ...evaluationTable(own)]),
        "",
        ...costLines(teacher, prices),
        `${kept} of ${tasks.length * trials} episodes are worth ${minReturn} or more`,
      ];
      writeFileSync(join(folder, "distill.txt"), `${card.join("\n")}\n`);
      print(io, `\n${card.join("\n")}`);
      print(
        io,
        kept === 0
          ? `\nrecorded to ${folder}, this card in distill.txt; nothing of it is good enough to imitate: look at it with pawl show ${folder}, lower --min-return, or take another teacher`
          : `\nrecorded to ${folder}, this card in distill.txt; to imitate and go on with RL:\npawl train --agent FILE --model.start ${settings.student} --warm-start.runs ${folder} --warm-start.min-return ${minReturn} --warm-start.episodes ${kept}`,
      );
    } catch (error) {
      progress.end();
      if (signal.aborted) warn(io, `interrupted; finished episodes are in ${folder}`);
      throw error;
    } finally {
      await model.engine.dispose();
    }
    return kept > 0 ? exitCodes.done : exitCodes.failed;
  },
});

/** What the teacher read and wrote, and what that costs where its prices are known. */
function costLines({ used }: Teacher, prices: readonly number[] | undefined): readonly string[] {
  const { answers, read, written, uncounted } = used;
  if (uncounted > 0)
    return [
      `${number(answers)} answers; the teacher's server did not count the tokens of ${number(uncounted)}${prices === undefined ? "" : ", so their cost is not known"}`,
    ];
  const cost =
    prices === undefined
      ? ""
      : `, which cost ${((read * prices[0]! + written * prices[1]!) / 1e6).toFixed(4)} at ${prices[0]} and ${prices[1]} for a million`;
  return [
    `${number(answers)} answers: ${number(read)} tokens read and ${number(written)} written${cost}`,
  ];
}
