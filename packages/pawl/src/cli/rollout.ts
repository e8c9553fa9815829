import { ConfigError } from "@pawl/core/config/config-error.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { createKnowledge } from "@pawl/core/rollout/choice/knowledge.js";
import { chooseTasks, rolloutConfig } from "@pawl/core/rollout/config.js";
import { createPolicy, type PolicyConfig } from "@pawl/core/rollout/policies/config.js";
import type { Situation } from "@pawl/core/rollout/policy.js";
import { recordRollout } from "@pawl/core/runs/record-rollout.js";
import { defaultRunFolder } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { z } from "zod";
import { type Asker, askPerson, createAsker } from "./asker.js";
import {
  checkpointOptions,
  checkpointPolicy,
  playConditions,
  refuseIgnoredPlaying,
  settingsOfCheckpoint,
} from "./checkpoint-policy.js";
import {
  type ChoosingPlayer,
  choosingOptions,
  openChoosing,
  printChoosing,
  refuseChoosing,
} from "./choosing.js";
import { defineCommand, exitCodes } from "./command.js";
import { envKindOf } from "./env-options.js";
import { tallyTable } from "./evaluation-table.js";
import { print, warn } from "./io.js";
import { rolloutProgress } from "./rollout-progress.js";

/** `pawl rollout`: a policy plays groups of episodes, recorded to a run folder. */
export const rollout = defineCommand({
  name: "rollout",
  summary: "let a policy play groups of episodes and record them",
  worlds: "named",
  options: (peek) =>
    rolloutConfig(envKindOf(peek)).safeExtend({
      ...checkpointOptions,
      ...choosingOptions,
      out: z.string().optional().describe("run folder to create (default: a new one in runs/)"),
    }),
  base: settingsOfCheckpoint,
  examples: [
    ["pawl rollout", "16 household tasks, 8 episodes each, by the expert"],
    [
      "pawl rollout --policy random --groups 4 --split valid_unseen",
      "how hard is it for random actions?",
    ],
    [
      "pawl rollout --policy chat --policy.base-url http://localhost:8000/v1 --policy.model NAME",
      "a chat model behind any OpenAI-compatible server; --policy.prompting react or reflexion",
    ],
    [
      "pawl rollout --checkpoint runs/… --temperature 1 --engine http://gpu:8000",
      "a trained agent, computed by an engine server",
    ],
    [
      "pawl rollout --checkpoint runs/… --split valid_seen --candidates 8 --choose model --choose.run runs/…",
      "each action chosen among eight, recorded with what was expected of them",
    ],
    ["pawl rollout --policy human --groups 1 --group-size 1", "play yourself, recorded"],
    ["pawl rollout --config run.yaml --seed 7", "settings from a file, one of them changed"],
  ],
  applies: playConditions,
  check({ groupSize, ...settings }, how) {
    const { env } = settings;
    refuseIgnoredPlaying(settings, how);
    const environment = openEnvironment({ ...env, name: String(env.name) });
    const tasks = chooseTasks(environment, settings);
    refuseChoosing(
      settings,
      environment,
      tasks.map(({ split }) => split),
    );
    return `pawl rollout would play ${tasks.length} tasks of ${environment.name}, each ${groupSize} times`;
  },
  async run({ config, given, placeOf, io, signal }) {
    const { out, ...settings } = config;
    const environment = openEnvironment({ ...settings.env, name: String(settings.env.name) });
    refuseIgnoredPlaying(settings, { given, placeOf });
    const tasks = chooseTasks(environment, settings);
    refuseChoosing(
      settings,
      environment,
      tasks.map(({ split }) => split),
    );
    const folder = out ?? defaultRunFolder("rollout", environment.name);
    let asker: Asker | undefined;
    const ask = async (situation: Situation): Promise<string> => {
      asker ??= createAsker(io);
      return askPerson(situation, asker, io, signal);
    };
    const { checkpoint } = settings;
    if (checkpoint !== undefined && settings.policy !== undefined)
      throw new ConfigError("--checkpoint: contradicts --policy; give only one of them");
    const chosen: PolicyConfig = settings.policy ?? { name: "expert", epsilon: 0 };
    const model =
      checkpoint === undefined
        ? undefined
        : await checkpointPolicy(checkpoint, settings, environment, { io, signal });
    const style = model?.style ?? promptStyle(environment.prompt, settings.prompt);
    const { seed, stepLimit, groupSize } = settings;
    const knowledge = createKnowledge();
    let choosing: ChoosingPlayer | undefined;
    try {
      if (model !== undefined && settings.candidates > 1)
        choosing = await openChoosing(settings, model.acting, {
          ...{ environment, seed, signal, stepLimit, io },
        });
      const policy =
        choosing?.policy ?? model?.policy ?? createPolicy(chosen, { environment, style, ask });
      const progress =
        model === undefined && chosen.name === "human"
          ? undefined
          : rolloutProgress(io, tasks.length, groupSize);
      const tally = await recordRollout(
        {
          ...{ environment, policy, tasks, style, groupSize, seed, signal },
          concurrency: settings.concurrency ?? (chosen.name === "chat" ? chosen.concurrency : 1),
          onProblem: (message) => warn(io, message),
          ...(stepLimit !== undefined && { stepLimit }),
          ...progress,
          onEpisode(episode) {
            knowledge.add(episode);
            progress?.onEpisode(episode);
          },
        },
        { folder, config: settings },
      )
        .catch((error: unknown) => {
          if (signal.aborted) warn(io, `interrupted; finished episodes are in ${folder}`);
          throw error;
        })
        .finally(() => progress?.end());
      print(io);
      for (const line of tallyTable(tally)) print(io, line);
      if (choosing !== undefined) printChoosing({ ...choosing, knowledge: knowledge.result() }, io);
      print(io, `\nrecorded to ${folder}; pawl show ${folder} shows it`);
    } finally {
      asker?.close();
      await choosing?.close();
      await model?.close();
    }
    return exitCodes.done;
  },
});
