/**
 * Synthetic data: a policy plays inside a world model, and episodes that the model calls successes
 * are imitated.
 *
 * Agents with the same start learn from N real episodes (Real), N synthetic ones (Syn), half of
 * each (Half), or all of both (1+1), and are compared in the real environment. Real and synthetic
 * episodes have different tasks, so that 1+1 is more than the same data twice.
 */
import type { Environment, Task } from "../envs/env.js";
import { UserError } from "../errors.js";
import { mixSeed } from "../random.js";
import type { Episode } from "../rollout/episode.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { play } from "../rollout/rollout.js";
import type { Counts } from "../rollout/tally.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import type { EngineOptions } from "../train/engines.js";
import { evaluate } from "../train/evaluate.js";
import { type ModelStart, openModel } from "../train/open-model.js";
import { type SftOptions, sft } from "../train/sft.js";
import { replay } from "../worldmodel/consistency.js";
import type { WorldModel } from "../worldmodel/model.js";
import { concurrencyOf, type Player } from "../worldmodel/players.js";
import { createSimulator, throughShadow } from "../worldmodel/simulator.js";

/** The four sets of episodes. */
export const variants = ["Real", "Syn", "Half", "1+1"] as const;
export type Variant = (typeof variants)[number];

/** Successful episodes of both worlds. */
export interface SynthesisData {
  readonly real: readonly Episode[];
  readonly syn: readonly Episode[];
  /** Tasks that were tried in each world. */
  readonly tried: number;
  /** The fraction of synthetic successes that are successes in the real world too. */
  readonly precision: number;
  readonly endings: Readonly<Record<string, number>>;
}

/** Plays in both worlds, each on its own tasks, and keeps the successes. */
export async function synthesise(options: {
  readonly environment: Environment;
  readonly model: WorldModel;
  readonly player: Player;
  readonly realTasks: readonly Task[];
  readonly synTasks: readonly Task[];
  readonly seed: number;
  readonly stepLimit?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}): Promise<SynthesisData> {
  const { environment, model, player, realTasks, synTasks } = options;
  const simulator = createSimulator({ environment, model, shadow: player.looksInside });
  const successes = async (
    world: Environment,
    policy: Player["policy"],
    tasks: readonly Task[],
  ): Promise<readonly Episode[]> => {
    const kept: Episode[] = [];
    await play({
      environment: world,
      policy,
      style: player.style,
      tasks,
      groupSize: 1,
      seed: options.seed,
      concurrency: concurrencyOf(policy),
      stepLimit: options.stepLimit,
      signal: options.signal,
      onEpisode: (episode) => {
        if (episode.success) kept.push(episode);
      },
    });
    // Workers finish in any order: sorted, the same seed gives the same list.
    return kept.sort((a, b) => a.group - b.group);
  };
  const real = await successes(environment, player.policy, realTasks);
  const inside = player.looksInside ? throughShadow(player.policy) : player.policy;
  const syn = await successes(simulator.environment, inside, synTasks);
  let right = 0;
  for (const episode of syn) {
    if ((await replay(environment, episode.task, episode)).success) right += 1;
  }
  return {
    real,
    syn,
    tried: Math.max(realTasks.length, synTasks.length),
    precision: right / syn.length,
    endings: Object.fromEntries(simulator.endings),
  };
}

/** The episodes of a variant, from equally many of each kind. */
export function variantEpisodes(
  variant: Variant,
  { real, syn }: Pick<SynthesisData, "real" | "syn">,
  most = Number.POSITIVE_INFINITY,
): readonly Episode[] {
  const count = Math.min(real.length, syn.length, most);
  if (count < 2) {
    throw new UserError(
      `there is nothing to compare: ${real.length} real and ${syn.length} synthetic successes; let the policy try more tasks (--episodes) or name a stronger one (--policy)`,
    );
  }
  const half = Math.floor(count / 2);
  switch (variant) {
    case "Real":
      return real.slice(0, count);
    case "Syn":
      return syn.slice(0, count);
    case "Half":
      return [...real.slice(0, half), ...syn.slice(0, count - half)];
    case "1+1":
      return [...real.slice(0, count), ...syn.slice(0, count)];
  }
}

/** How the compared agents learn and are tested. */
export interface TraineeOptions {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly start: ModelStart;
  readonly maxContext: number;
  /** For models from scratch: the world model's, which knows the words of its training. */
  readonly tokenizer: Tokenizer | undefined;
  readonly sft: SftOptions;
  readonly splits: readonly string[];
  readonly tasks: number;
  readonly temperature: number;
  readonly maxTokens: number;
  readonly stepLimit?: number | undefined;
  readonly engine: EngineOptions;
  readonly seed: number;
  readonly signal?: AbortSignal | undefined;
}

/** Trains an agent on the episodes and plays the real tasks; counts by split. */
export async function trainAndTest(
  episodes: readonly Episode[],
  options: TraineeOptions,
): Promise<Readonly<Record<string, Counts>>> {
  const { environment, style, start, maxContext, seed, signal, stepLimit } = options;
  const words = options.tokenizer;
  const { engine, tokenizer } = await openModel({
    start,
    engine: options.engine,
    ...(words !== undefined && { scratch: { maxContext, tokenizer: () => words } }),
    seed,
  });
  try {
    const text = { tokenizer, style };
    await sft(engine, episodes, text, { ...options.sft, seed, signal });
    const { temperature, maxTokens, tasks } = options;
    const policy = enginePolicy({ engine, ...text, sampling: { temperature, maxTokens } });
    const counts: Record<string, Counts> = {};
    for (const split of options.splits) {
      const tally = await evaluate({
        environment,
        policy,
        style,
        split,
        tasks,
        seed: mixSeed(seed, "evaluation"),
        stepLimit,
        signal,
      });
      counts[split] = tally.all;
    }
    return counts;
  } finally {
    await engine.dispose();
  }
}
