/** Behaviour mixtures: trajectories of several policies, each with its number of episodes. */
import { ConfigError } from "../config/config-error.js";
import type { Environment, Task } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";
import { play } from "../rollout/rollout.js";
import { concurrencyOf, openPlayer, type PlayerOptions } from "./players.js";
import type { Problems } from "./problems.js";
import { type Trajectory, trajectoryOf } from "./trajectory.js";

/** A policy and how many episodes it plays. */
export interface Behaviour {
  readonly player: string;
  readonly episodes: number;
}

/** Parses a mixture such as `expert:500`, `epsilon=0.3:200`, `runs/…:100`. */
export function parseBehaviours(texts: readonly string[]): readonly Behaviour[] {
  return texts.map((text) => {
    const [, player, episodes] = /^(.+):(\d+)$/.exec(text) ?? [];
    if (player === undefined || Number(episodes) === 0) {
      throw new ConfigError(
        `--mix: expected a policy and its number of episodes, for example expert:500, epsilon=0.3:200 or runs/…:100, got "${text}"`,
      );
    }
    return { player, episodes: Number(episodes) };
  });
}

/** What to play, and callbacks. */
export interface BehaviourOptions extends PlayerOptions {
  readonly environment: Environment;
  readonly split: string;
  readonly behaviours: readonly Behaviour[];
  readonly stepLimit?: number | undefined;
  readonly seed: number;
  readonly signal?: AbortSignal;
  readonly onTrajectory?: (done: number) => void;
}

/** Plays the mixture in the environment; each policy gets its own random tasks. */
export async function playBehaviours(
  options: BehaviourOptions,
  problems: Problems,
): Promise<readonly Trajectory[]> {
  const { environment, split, stepLimit, signal } = options;
  const trajectories: Trajectory[] = [];
  for (const [index, { player: text, episodes }] of options.behaviours.entries()) {
    const player = await openPlayer(text, environment, options);
    try {
      const seed = mixSeed(options.seed, "behaviour", index);
      await play({
        environment,
        policy: player.policy,
        style: player.style,
        tasks: drawTasks(environment.tasks(split), episodes, seed),
        groupSize: 1,
        seed,
        // Scripted players wait for nothing, and one after another their order is always the same.
        concurrency: player.looksInside ? 1 : concurrencyOf(player.policy),
        stepLimit,
        signal,
        onEpisode(episode) {
          const where = `${text}, episode ${episode.group}`;
          const trajectory = trajectoryOf(
            { ...episode, policy: text },
            environment.name,
            where,
            problems,
          );
          if (trajectory !== undefined) trajectories.push(trajectory);
          options.onTrajectory?.(trajectories.length);
        },
      });
    } finally {
      await player.dispose();
    }
  }
  return trajectories;
}

/** Tasks in random order; none is repeated before all were used. */
function drawTasks(tasks: readonly Task[], count: number, seed: number): readonly Task[] {
  const drawn: Task[] = [];
  for (let round = 0; drawn.length < count && tasks.length > 0; round++) {
    const order = createRandom(mixSeed(seed, "tasks", round)).shuffle([...tasks]);
    for (const task of order.slice(0, count - drawn.length)) drawn.push(task);
  }
  return drawn;
}
