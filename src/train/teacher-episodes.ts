/** The episodes that a warm start imitates: a teacher's, played now or recorded earlier. */
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../config/config-error.js";
import { EnvError, type Environment } from "../envs/env.js";
import { mixSeed } from "../random.js";
import type { Episode } from "../rollout/episode.js";
import { teacherPolicy } from "../rollout/policies/config.js";
import { rollout } from "../rollout/rollout.js";
import { openRun } from "../runs/run-folder.js";
import type { PromptStyle } from "../text/prompt.js";
import { countingEpisodes, type OnActivity } from "./activity.js";
import type { TrainConfig } from "./config.js";

/** Where the teacher plays, and how its episodes are rendered. */
export interface TeacherSetup {
  readonly environment: Environment;
  readonly style: PromptStyle;
}

interface TeacherCallbacks {
  readonly onProblem?: (message: string) => void;
  readonly onActivity?: OnActivity;
}

/** As many episodes as configured; tasks are repeated, with other seeds, if there are fewer. */
export async function teacherEpisodes(
  { environment, style }: TeacherSetup,
  config: Pick<TrainConfig, "warmStart" | "split" | "seed" | "stepLimit" | "env" | "prompt">,
  { onProblem = () => undefined, onActivity }: TeacherCallbacks = {},
): Promise<readonly Episode[]> {
  const { episodes, teacher, epsilon, runs } = config.warmStart;
  if (runs.length > 0) {
    const recorded = runs.flatMap((folder) => recordedEpisodes(folder, config, onProblem));
    if (recorded.length < episodes)
      throw new ConfigError(
        `warmStart.episodes is ${episodes}, but the runs that warmStart.runs names hold ${recorded.length}: lower it, or record more with pawl rollout`,
      );
    return recorded.slice(0, episodes);
  }
  if (environment[teacher] === undefined) {
    throw new EnvError(
      `${environment.name} has no ${teacher} to imitate: set warmStart.episodes to 0`,
    );
  }
  const tasks = environment.tasks(config.split);
  const groups = await rollout({
    environment,
    style,
    policy: teacherPolicy(environment, teacher, epsilon),
    tasks: Array.from({ length: episodes }, (_, i) => tasks[i % tasks.length]!),
    groupSize: 1,
    seed: mixSeed(config.seed, "warm start"),
    ...countingEpisodes("the teacher plays", episodes, onActivity),
    ...(config.stepLimit !== undefined && { stepLimit: config.stepLimit }),
  });
  return groups.flatMap((group) => group.episodes).filter(isWhole);
}

const isWhole = (episode: Episode): boolean => episode.stop !== "broken";

/**
 * The unbroken episodes of a run; its prompts are imitated unchanged, so they must match this
 * run's.
 */
function recordedEpisodes(
  folder: string,
  { env, prompt }: Pick<TrainConfig, "env" | "prompt">,
  onProblem: (message: string) => void,
): readonly Episode[] {
  const run = openRun(folder, onProblem);
  const recorded = run.manifest.config as Partial<Pick<TrainConfig, "env" | "prompt">>;
  if (recorded.env?.name !== env.name)
    throw new ConfigError(
      `warmStart.runs: ${folder} was played in ${String(recorded.env?.name)}; expected episodes of ${env.name}`,
    );
  if (!isDeepStrictEqual(recorded.prompt, prompt))
    throw new ConfigError(
      `warmStart.runs: ${folder} was recorded with the prompt settings ${JSON.stringify(recorded.prompt)}; expected ${JSON.stringify(prompt)}, as in this run`,
    );
  return [...run.episodes()].filter(isWhole);
}
