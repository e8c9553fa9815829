/**
 * Hints: a group whose task is too hard begins where a teacher has already done a part of it, and has
 * less left to find (from the end of a demonstration backwards: Salimans and Chen 2018, arXiv
 * 1812.03381; Florensa et al. 2017, arXiv 1707.05300).
 *
 *   k = ⌊(1 − estimate / rate)₊ · L⌋      L: the steps of the teacher's episode
 *
 * The estimate is the curriculum's, of this task's success so far, hinted or not. So hints come where
 * tasks fail, grow until a group succeeds as often as wanted, and are gone when it does without. All
 * episodes of a group begin in the same state, and only their own steps are learnt. A world in this
 * process is copied there; one that answers later repeats the teacher's steps. Where the teacher fails,
 * the group begins with its task.
 */
import { ConfigError } from "../config/config-error.js";
import { EngineFailure } from "../engine/ask.js";
import { type Env, type Environment, isRemote, type Task } from "../envs/env.js";
import { mixSeed } from "../random.js";
import type { Fork } from "../rollout/episode.js";
import { startEpisode } from "../rollout/episode-run.js";
import { carries, type PaceOptions } from "../rollout/pace.js";
import { teacherPolicy } from "../rollout/policies/config.js";
import { bringsPolicy } from "../rollout/policy.js";
import type { PromptStyle } from "../text/prompt.js";
import type { CurriculumOptions } from "./curriculum.js";

/** Where a teacher plays. */
interface HintSetup {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly teacher: NonNullable<CurriculumOptions["hints"]>;
  /** The share of each task that is left to the teacher. */
  readonly share: (task: Task) => number;
  readonly stepLimit?: number | undefined;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

/** Where the group of each task begins; undefined: with its task. */
export async function hintsFor(
  tasks: readonly Task[],
  setup: HintSetup,
): Promise<readonly (Fork | undefined)[]> {
  const hints: (Fork | undefined)[] = [];
  for (const [group, task] of tasks.entries()) {
    setup.signal?.throwIfAborted();
    const share = setup.share(task);
    hints.push(share > 0 ? await hintFor(task, group, share, setup) : undefined);
  }
  return hints;
}

async function hintFor(
  task: Task,
  group: number,
  share: number,
  { environment, style, teacher, stepLimit, seed, signal }: HintSetup,
): Promise<Fork | undefined> {
  const policy = teacherPolicy(environment, teacher, 0);
  const run = await startEpisode({
    ...{ environment, style, task, group, attempt: 0, seed: mixSeed(seed, "hint", group) },
    ...{ stepLimit: stepLimit ?? environment.stepLimit, policy: policy.name, signal },
    invalidActionLimit: Number.POSITIVE_INFINITY,
  });
  const worlds: Env[] = [];
  try {
    while (run.episode === undefined) {
      const situation = run.situation();
      if (!isRemote(situation.env)) worlds.push(situation.env.clone());
      const [reply] = await policy.act([situation], signal);
      await run.advance(reply!);
    }
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    signal?.throwIfAborted();
    run.breakOff(error);
  } finally {
    await run.close().catch(() => undefined);
  }
  const { episode } = run;
  if (!episode?.success) return undefined;
  const step = Math.floor(share * episode.steps.length);
  return step === 0 ? undefined : { episode, step, world: worlds[step], isHint: true };
}

/** Throws if there is no teacher, or no way to where it left. */
export function checkHints(
  {
    curriculum: { hints, rate },
    rollout,
  }: {
    readonly curriculum: Pick<CurriculumOptions, "hints" | "rate">;
    readonly rollout: PaceOptions;
  },
  environment: Environment,
): void {
  if (hints === undefined) return;
  const refuse = (why: string): never => {
    throw new ConfigError(`curriculum.hints ${hints}: ${why}, or leave curriculum.hints out`);
  };
  if (rate === undefined)
    refuse("they fade as a task's success nears the wanted rate: set curriculum.rate");
  if (bringsPolicy(environment))
    refuse(`episodes of ${environment.name} are played by a program, which no teacher can begin`);
  if (environment[hints] === undefined)
    refuse(`${environment.name} has no ${hints}: name another teacher`);
  if (carries(rollout))
    refuse("groups that are carried over are not complete: let stragglers break");
  const world = environment.create();
  if (isRemote(world) && world.clone === undefined)
    refuse(`worlds of ${environment.name} can be neither copied nor repeated: take another`);
}
