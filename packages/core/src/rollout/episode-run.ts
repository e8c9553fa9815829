/** An episode in progress: what the policy sees next, and what its reply does. */
import { EngineFailure } from "../engine/ask.js";
import {
  type BoundedEnv,
  boundedEnv,
  checkAdmissible,
  checkStep,
  checkText,
} from "../envs/bounded-env.js";
import { type Env, EnvError, type RemoteEnv, type StepResult } from "../envs/env.js";
import { DEFAULT_LIMITS } from "../envs/limits.js";
import { mixSeed } from "../random.js";
import type { PromptPiece } from "../text/prompt.js";
import type { ParsedResponse } from "../text/prompt-style.js";
import type { Sequence } from "../text/sequence.js";
import type { Tool } from "../text/tool.js";
import { readAction } from "../text/verbatim.js";
import {
  type Episode,
  type EpisodePlan,
  type Fork,
  reasonOf,
  type Step,
  type StopReason,
} from "./episode.js";
import type { Reply, Situation } from "./policy.js";

/** An episode between two decisions. */
export interface EpisodeRun {
  readonly plan: EpisodePlan;
  /** The steps taken so far. */
  readonly steps: readonly Step[];
  /** The record, once the episode is over. */
  readonly episode: Episode | undefined;
  situation(): Situation;
  /**
   * Applies the reply to the last situation. A world that fails breaks the episode, not the
   * rollout; an engine that serves many worlds at once ends the rollout.
   */
  advance(reply: Reply): Promise<void>;
  /** Ends the episode because something outside it failed. */
  breakOff(error: unknown): void;
  /** Releases the world. */
  close(): Promise<void>;
}

/** Starts an episode. If the environment cannot be reset, the episode is already broken. */
export async function startEpisode(plan: EpisodePlan): Promise<EpisodeRun> {
  const { style, task, fork } = plan;
  const { limits = DEFAULT_LIMITS } = plan.environment;
  const steps: Step[] = [];
  let env: Env | RemoteEnv | undefined;
  let world: BoundedEnv | undefined;
  // A world that could not be reset has no goal.
  let goal = "";
  let firstObservation = "";
  let observation = "";
  let initialContext: string | undefined;
  let maxReturn: number | undefined;
  let tools: readonly Tool[] | undefined;
  let total = 0;
  let invalid = 0;
  let last: StepResult | undefined;
  let episode: Episode | undefined;
  // A policy that continues from its own tokens does not read the text: render it only when the
  // step is recorded.
  let rendered: (() => readonly PromptPiece[]) | undefined;

  const finish = (stop: StopReason, error?: unknown): void => {
    const score = last?.info.score;
    episode = {
      task,
      group: plan.group,
      attempt: plan.attempt,
      ...beginningOf(fork),
      seed: fork?.episode.seed ?? plan.seed,
      policy: plan.policy,
      goal,
      firstObservation,
      ...(initialContext !== undefined && { initialContext }),
      steps,
      ...(maxReturn !== undefined && { maxReturn }),
      return: total,
      success: last?.info.success ?? false,
      ...(score !== undefined && { score }),
      stop,
      ...(error !== undefined && { error: reasonOf(error) }),
    };
  };

  /** What the next step sees, and how its prompt is written. */
  const look = (world: Env | RemoteEnv) => {
    const index = steps.length;
    const admissible = checkAdmissible(world.admissibleActions?.());
    const seen = { goal, observation, firstObservation, admissible, index, tools };
    const render = lazily(() => style.render({ steps: steps.slice(0, index), ...seen }));
    rendered = render;
    return { seen, render };
  };

  const readResponse = (response: string): ParsedResponse =>
    readAction(style, response, { tools, whiteSpace: plan.environment.whiteSpace });

  /** Takes the steps again that reached the world. */
  const repeatSteps = async (): Promise<void> => {
    for (const [at, { action, response, refused, ...was }] of steps.entries()) {
      if (refused || readResponse(response).problem !== undefined) continue;
      const { observation: now, reward, done } = checkStep(await world!.step(action), limits);
      if (now !== was.observation || reward !== was.reward || done)
        throw differs(fork!, at + 1, now);
    }
  };

  /** Goes on in the state in which another episode was left. */
  const branchOff = async ({ episode: left, step: at, world: copied }: Fork): Promise<void> => {
    steps.push(...left.steps.slice(0, at));
    if (copied === undefined) {
      if (firstObservation !== left.firstObservation) throw differs(fork!, 0, firstObservation);
      await repeatSteps();
    }
    for (const { reward, valid } of steps) {
      total += reward;
      invalid = valid ? 0 : invalid + 1;
    }
    observation = steps.at(-1)?.observation ?? observation;
  };

  try {
    env = fork?.world?.clone() ?? plan.environment.create();
    world = boundedEnv(env, limits, interruptOf(plan));
    const { seed } = fork?.episode ?? plan;
    const first = fork?.world ? fork.episode.firstObservation : await world.reset(task, seed);
    firstObservation = checkText(first, "the first observation", limits);
    goal = checkText(env.goal, "the goal", limits);
    tools = env.tools?.();
    observation = firstObservation;
    initialContext = fork ? fork.episode.initialContext : env.initialContext?.();
    maxReturn = checkMaxReturn(env.maxReturn?.());
    if (fork !== undefined) await branchOff(fork);
  } catch (error) {
    finish("broken", error);
  }

  return {
    plan,
    steps,
    get episode() {
      return episode;
    },
    situation() {
      if (env === undefined) throw new Error("the episode is over: it never started");
      const { seen, render } = look(env);
      // Spread last: V8 builds such objects a hundred times faster.
      return {
        task,
        group: plan.group,
        attempt: plan.attempt,
        steps,
        get prompt() {
          return render();
        },
        seed: mixSeed(plan.seed, steps.length),
        env,
        format: (action) => style.format(action),
        ...seen,
      };
    },
    async advance(reply) {
      if (reply.overflow) {
        finish("context-limit");
        return;
      }
      // A step that nobody was asked about has a prompt as well.
      const render = rendered ?? look(env!).render;
      rendered = undefined;
      const parsed = readResponse(reply.response);
      const { action } = parsed;
      const problem = reply.refusal ?? parsed.problem;
      const wellFormed = parsed.wellFormed && reply.cut !== true;
      let sequence: Sequence | undefined;
      try {
        const stepped = problem === undefined ? await world!.step(action) : refusal(problem);
        const answer = checkStep(stepped, limits);
        sequence = reply.encode?.(answer.observation, answer.done);
        last = answer;
      } catch (error) {
        if (error instanceof EngineFailure) throw error;
        plan.signal?.throwIfAborted();
        finish("broken", error);
        return;
      }
      const { prompt } = reply;
      steps.push({
        get prompt() {
          return prompt ?? render();
        },
        response: reply.response,
        action,
        wellFormed,
        valid: wellFormed && last.info.valid,
        observation: last.observation,
        reward: last.reward,
        ...(reply.cut && { cut: true }),
        ...(reply.refusal !== undefined && { refused: true }),
        ...(reply.strayed && { strayed: true }),
        ...(reply.candidates && { candidates: reply.candidates }),
        ...(sequence !== undefined && { sequence }),
      });
      total += last.reward;
      invalid = steps.at(-1)!.valid ? 0 : invalid + 1;
      observation = last.observation;
      if (last.done) finish("done");
      else if (steps.length >= plan.stepLimit) finish("step-limit");
      else if (invalid >= plan.invalidActionLimit) finish("stuck");
    },
    breakOff: (error) => finish("broken", error),
    async close() {
      const left = world;
      // The record may outlive the world and must not keep it alive.
      env = undefined;
      world = undefined;
      await left?.close();
    },
  };
}

/** What the record says of the steps that were not played for an episode. */
function beginningOf(fork: Fork | undefined): Pick<Episode, "branch" | "hint"> {
  if (fork === undefined) return {};
  const { episode, step } = fork;
  if (fork.isHint) return { hint: step };
  const { attempt: from, hint } = episode;
  return { branch: { from, step }, ...(hint !== undefined && { hint }) };
}

/** A largest return that is none would make a wrong λ of every group with this task. */
function checkMaxReturn(most: number | undefined): number | undefined {
  if (most !== undefined && !(most > 0 && Number.isFinite(most)))
    throw new EnvError(`maxReturn() of the world is ${most}; expected a positive number`);
  return most;
}

/** A world that answers otherwise when the same is done again has no states to go back to. */
function differs({ isHint }: Fork, step: number, found: string): EnvError {
  const [setting, fix] = isHint
    ? ["curriculum.hints", "leave curriculum.hints out"]
    : ["rollout.branch", "set rollout.branch.points to 0"];
  return new EnvError(
    `${setting}: the world does not repeat itself: after the same ${step} steps it says ${JSON.stringify(reasonOf(found))} now; ${fix}`,
  );
}

/** Whatever ends the waiting for a world. */
function interruptOf({ signal, late }: EpisodePlan): AbortSignal | undefined {
  return signal === undefined || late === undefined
    ? (signal ?? late)
    : AbortSignal.any([signal, late]);
}

/** What answers an action that is refused, or a tool call that cannot be read: nothing happens in the world. */
function refusal(problem: string): StepResult {
  return { observation: problem, reward: 0, done: false, info: { valid: false, success: false } };
}

/** Calls a function when its value is first needed, and only once. */
function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
