import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { envConfig, openEnvironment } from "../envs/open.js";
import { findEnvKind } from "../envs/registry.js";
import { createPolicy, type PolicyConfig, policyConfig } from "../rollout/policies/config.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { recordRollout } from "../runs/record-rollout.js";
import { defaultRunFolder } from "../runs/run-folder.js";
import { promptOptions, promptStyle } from "../text/prompt.js";
import { evaluationTasks } from "../train/evaluate.js";
import { findSavedModel, loadSavedModel } from "../train/saved-model.js";
import { createAsker } from "./asker.js";
import { defineCommand, exitCodes } from "./command.js";
import { evaluationJson, evaluationTable } from "./evaluation-table.js";
import { askPerson } from "./human.js";
import { print, warn } from "./io.js";
import { rolloutProgress } from "./rollout-progress.js";

const count = z.int().min(1);
/** Episodes of a checkpoint that move in step: what the engine keeps of so many prompts fits its memory. */
const BATCH = 256;

/** `pawl eval`: a policy or a checkpoint on a split, each task once. */
export const evaluate = defineCommand({
  name: "eval",
  summary: "evaluate a policy or a checkpoint on a split, each task once",
  details:
    "With --checkpoint, environment, prompt, limits and temperature are those its run was trained and evaluated\nwith, where it belongs to a run; flags change single ones. Intervals are Wilson's, 95 %. Broken episodes\nare counted apart and are in no share.",
  options: (peek) =>
    z.strictObject({
      env: envConfig(findEnvKind(peek("env.name") ?? "household")).prefault({}),
      policy: policyConfig.optional(),
      checkpoint: z
        .string()
        .optional()
        .describe("instead of a policy: a run folder (its latest checkpoint), or a model's folder"),
      split: z.string().default("valid_seen").describe("the split to take tasks from"),
      tasks: count.optional().describe("the first tasks of the split; default: all of them"),
      prompt: promptOptions.prefault({}),
      temperature: z
        .number()
        .min(0)
        .default(0)
        .describe("of a checkpoint; 0 takes the most probable token"),
      maxTokens: count.default(512).describe("longest response of a checkpoint, in tokens"),
      stepLimit: count.optional().describe("steps per episode; default: the environment's limit"),
      lanes: count
        .optional()
        .describe("episodes side by side; default 1, for chat models policy.concurrency"),
      threads: count.optional().describe("threads of a checkpoint's engine; default: one per core"),
      seed: z.int().min(0).default(0).describe("seed of every draw"),
      out: z.string().optional().describe("the run folder to make; default: a new one below runs/"),
      json: z.boolean().default(false).describe("print the results as one line of JSON"),
    }),
  base(peek) {
    const folder = peek("checkpoint");
    const config = folder === undefined ? undefined : findSavedModel(folder).config;
    if (folder === undefined || config === undefined) return undefined;
    const { env, prompt, stepLimit, maxTokens, evaluation, engine } = config;
    const content = { env, prompt, maxTokens, temperature: evaluation.temperature };
    return {
      path: `the run of ${folder}`,
      content: {
        ...content,
        ...(stepLimit !== undefined && { stepLimit }),
        ...(engine.threads !== undefined && { threads: engine.threads }),
      },
    };
  },
  examples: [
    ["pawl eval --checkpoint runs/…", "the trained agent on all tasks of valid_seen"],
    ["pawl eval --checkpoint runs/… --split valid_unseen --temperature 0", "greedily, elsewhere"],
    ["pawl eval --checkpoint runs/…/reference --tasks 128", "what RL started from"],
    ["pawl eval --policy random --split valid_unseen", "how hard is it by chance?"],
    ["pawl eval --policy expert --json", "one line of JSON, for other programs"],
  ],
  async run({ config, io, signal }) {
    const { out, json, ...settings } = config;
    const { split, stepLimit, checkpoint } = settings;
    if (checkpoint !== undefined && settings.policy !== undefined)
      throw new ConfigError("--checkpoint: contradicts --policy; give one of them");
    const chosen: PolicyConfig = settings.policy ?? { name: "expert", epsilon: 0 };
    const environment = openEnvironment({ ...settings.env, name: String(settings.env.name) });
    const tasks = evaluationTasks(environment, split, settings.tasks);
    const style = promptStyle(environment.promptFamily, settings.prompt);
    const folder = out ?? defaultRunFolder("eval", environment.name);
    const asker = checkpoint === undefined && chosen.name === "human" ? createAsker(io) : undefined;
    const { threads, temperature, maxTokens } = settings;
    const model =
      checkpoint === undefined
        ? undefined
        : await loadSavedModel(
            findSavedModel(checkpoint),
            threads === undefined ? {} : { threads },
          );
    const progress = asker === undefined ? rolloutProgress(io, tasks.length, 1) : undefined;
    try {
      const policy =
        model === undefined
          ? createPolicy(chosen, {
              environment,
              style,
              ask: (situation) => askPerson(situation, asker!, io, signal),
            })
          : enginePolicy({ ...model, style, batch: BATCH, sampling: { temperature, maxTokens } });
      const tally = await recordRollout(
        {
          environment,
          policy,
          tasks,
          style,
          groupSize: 1,
          seed: settings.seed,
          lanes: settings.lanes ?? (chosen.name === "chat" ? chosen.concurrency : 1),
          signal,
          onProblem: (message) => warn(io, message),
          ...(stepLimit !== undefined && { stepLimit }),
          ...progress,
        },
        { folder, config: settings, kind: "eval" },
      );
      progress?.end();
      if (json) print(io, JSON.stringify({ split, ...evaluationJson(tally), folder }));
      else {
        print(io);
        for (const line of evaluationTable(tally)) print(io, line);
        print(io, `\nrecorded to ${folder}; pawl show ${folder} shows it`);
      }
    } catch (error) {
      progress?.end();
      if (signal.aborted) warn(io, `interrupted; what was finished is in ${folder}`);
      throw error;
    } finally {
      asker?.close();
      await model?.engine.dispose();
    }
    return exitCodes.done;
  },
});
