/**
 * Consistency: whether what works in a world model works in the world.
 *
 *   Real  success of the policy in the real environment
 *   WM    success of the policy inside the model, as judged by the model
 *   W2R   success of the actions of the WM episodes, replayed in the real environment
 *   CR    W2R / Real
 *
 * All three play the same tasks with the same seeds. Policies that look inside the world do not
 * depend on the model's observations, so for them only its judgement of success is tested; they are
 * marked.
 */
import { closeWorld } from "../envs/bounded-env.js";
import type { Environment, Task } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";
import type { Episode } from "../rollout/episode.js";
import { play } from "../rollout/rollout.js";
import { sameOutcome } from "./fidelity.js";
import type { WorldModel } from "./model.js";
import { concurrencyOf, type Player } from "./players.js";
import { type Anchor, createSimulator, throughShadow } from "./simulator.js";

/** What to compare. */
export interface ConsistencyOptions {
  readonly environment: Environment;
  readonly model: WorldModel;
  readonly player: Player;
  readonly tasks: readonly Task[];
  readonly seed: number;
  readonly stepLimit?: number | undefined;
  readonly anchor?: Anchor | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of episodes, real and simulated, that have ended. */
  readonly onEpisodes?: ((done: number) => void) | undefined;
}

/** One task, played in the world, in the model, and again in the world. */
export interface ConsistencyCase {
  readonly task: string;
  readonly real: boolean;
  readonly wm: boolean;
  readonly w2r: boolean;
  /** Steps of the WM episode. */
  readonly steps: number;
  /**
   * The first step, from 1, at which model and world answered differently; absent if they never
   * did.
   */
  readonly divergence?: number;
}

/** The results of one policy. */
export interface ConsistencyResult {
  readonly policy: string;
  readonly looksInside: boolean;
  readonly cases: readonly ConsistencyCase[];
  /** Tasks with a broken episode; no result includes them. */
  readonly broken: number;
  /** How the model ended its episodes. */
  readonly endings: Readonly<Record<string, number>>;
  readonly anchored: number;
}

/** Plays the tasks in the world and in the model, and replays the model's episodes in the world. */
export async function measureConsistency(options: ConsistencyOptions): Promise<ConsistencyResult> {
  const { environment, model, player, tasks, anchor } = options;
  const simulator = createSimulator({
    environment,
    model,
    shadow: player.looksInside,
    ...(anchor !== undefined && { anchor }),
  });
  let done = 0;
  const onEpisode = (): void => {
    done += 1;
    options.onEpisodes?.(done);
  };
  const real = await episodesOf(environment, player, { ...options, onEpisode });
  const wm = await episodesOf(
    simulator.environment,
    player.looksInside ? { ...player, policy: throughShadow(player.policy) } : player,
    { ...options, onEpisode },
  );
  const cases: ConsistencyCase[] = [];
  for (const [at, task] of tasks.entries()) {
    const [inReal, inModel] = [real.get(at), wm.get(at)];
    if (inReal === undefined || inModel === undefined) continue;
    const { success, divergence } = await replay(environment, task, inModel);
    cases.push({
      task: task.id,
      real: inReal.success,
      wm: inModel.success,
      w2r: success,
      steps: inModel.steps.length,
      ...(divergence !== undefined && { divergence }),
    });
  }
  return {
    policy: player.name,
    looksInside: player.looksInside,
    cases,
    broken: tasks.length - cases.length,
    endings: Object.fromEntries(simulator.endings),
    anchored: simulator.anchored(),
  };
}

/** Unbroken episodes by the number of their task. */
async function episodesOf(
  environment: Environment,
  { policy, style }: Pick<Player, "policy" | "style">,
  {
    tasks,
    seed,
    stepLimit,
    signal,
    onEpisode,
  }: ConsistencyOptions & { readonly onEpisode: () => void },
): Promise<ReadonlyMap<number, Episode>> {
  const episodes = new Map<number, Episode>();
  await play({
    environment,
    policy,
    style,
    tasks,
    groupSize: 1,
    seed,
    concurrency: concurrencyOf(policy),
    stepLimit,
    signal,
    onEpisode(episode) {
      if (episode.stop !== "broken") episodes.set(episode.group, episode);
      onEpisode();
    },
  });
  return episodes;
}

/** Takes the actions of a simulated episode in the real world. */
export async function replay(
  environment: Environment,
  task: Task,
  episode: Pick<Episode, "steps" | "seed" | "success">,
): Promise<{ readonly success: boolean; readonly divergence: number | undefined }> {
  const env = environment.create();
  try {
    await env.reset(task, episode.seed);
    let divergence: number | undefined;
    for (const [index, { action, observation }] of episode.steps.entries()) {
      const { done, info, observation: seen } = await env.step(action);
      const { success } = info;
      const last = index === episode.steps.length - 1;
      const told = { observation, done, success: last && episode.success };
      if (!sameOutcome(told, { observation: seen, done, success })) divergence ??= index + 1;
      if (done) return { success, divergence };
    }
    return { success: false, divergence };
  } finally {
    // One that cannot be closed is left behind, as in rollouts.
    await closeWorld(env).catch(() => undefined);
  }
}

/** Success rates, and the consistency ratio; NaN if the divisor is 0. */
export function consistencyRates(cases: readonly Pick<ConsistencyCase, "real" | "wm" | "w2r">[]) {
  const share = (key: "real" | "wm" | "w2r"): number =>
    cases.filter((one) => one[key]).length / cases.length;
  const [real, wm, w2r] = [share("real"), share("wm"), share("w2r")];
  return { real, wm, w2r, cr: real === 0 ? Number.NaN : w2r / real };
}

const RESAMPLES = 1000;

/**
 * The 95 % interval of the consistency ratio, by resampling tasks; undefined if Real has no
 * success.
 */
export function ratioInterval(
  cases: readonly ConsistencyCase[],
  seed = 0,
): readonly [low: number, high: number] | undefined {
  const random = createRandom(mixSeed(seed, "bootstrap"));
  const ratios: number[] = [];
  for (let n = 0; n < RESAMPLES; n++) {
    const drawn = cases.map(() => cases[random.int(cases.length)]!);
    const { cr } = consistencyRates(drawn);
    if (!Number.isNaN(cr)) ratios.push(cr);
  }
  if (ratios.length === 0) return undefined;
  ratios.sort((a, b) => a - b);
  const at = (share: number): number => ratios[Math.round(share * (ratios.length - 1))]!;
  return [at(0.025), at(0.975)];
}

/**
 * Where WM episodes first diverge from the world: how many never do, and the median step of the
 * others.
 */
export function divergenceOf(cases: readonly ConsistencyCase[]) {
  const steps = cases.flatMap(({ divergence }) => divergence ?? []).sort((a, b) => a - b);
  return {
    never: (cases.length - steps.length) / cases.length,
    median: steps[Math.floor(steps.length / 2)] ?? Number.NaN,
    steps,
  };
}
