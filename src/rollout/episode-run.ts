/** An episode in progress: what the policy sees next, and what its reply does. */
import { EngineFailure } from "../engine/ask.js";
import type { Env, Environment, RemoteEnv, StepResult, Task } from "../envs/env.js";
import { mixSeed } from "../random.js";
import type { PromptPiece, PromptStyle } from "../text/prompt.js";
import type { Tool } from "../text/tool.js";
import type { Episode, Step, StopReason } from "./episode.js";
import type { Reply, Situation } from "./policy.js";

/** Which episode to run, and under which limits. */
export interface EpisodePlan {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly task: Task;
  readonly group: number;
  readonly attempt: number;
  readonly seed: number;
  readonly stepLimit: number;
  /** The episode ends after this many invalid actions in a row. */
  readonly invalidActionLimit: number;
  readonly policy: string;
}

/** An episode between two decisions. */
export interface EpisodeRun {
  readonly plan: EpisodePlan;
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
  const { style, task } = plan;
  const steps: Step[] = [];
  let env: Env | RemoteEnv | undefined;
  // A world that could not be reset has no goal.
  let goal = "";
  let firstObservation = "";
  let observation = "";
  let initialContext: string | undefined;
  let tools: readonly Tool[] | undefined;
  let total = 0;
  let invalid = 0;
  let last: StepResult | undefined;
  let episode: Episode | undefined;
  // A policy that continues from its own tokens does not read the text: render it only when the
  // step is recorded.
  let rendered: () => readonly PromptPiece[] = () => [];

  const finish = (stop: StopReason, error?: unknown): void => {
    const score = last?.info.score;
    episode = {
      task,
      group: plan.group,
      attempt: plan.attempt,
      seed: plan.seed,
      policy: plan.policy,
      goal,
      firstObservation,
      ...(initialContext !== undefined && { initialContext }),
      steps,
      return: total,
      success: last?.info.success ?? false,
      ...(score !== undefined && { score }),
      stop,
      ...(error !== undefined && { error: error instanceof Error ? error.message : String(error) }),
    };
  };

  try {
    env = plan.environment.create();
    firstObservation = textOf(await env.reset(task, plan.seed));
    goal = env.goal;
    tools = env.tools?.();
    observation = firstObservation;
    initialContext = env.initialContext?.();
  } catch (error) {
    finish("broken", error);
  }

  return {
    plan,
    get episode() {
      return episode;
    },
    situation() {
      if (env === undefined) throw new Error("the episode is over: it never started");
      const index = steps.length;
      const admissible = env.admissibleActions?.();
      const seen = { goal, observation, firstObservation, admissible, index, tools };
      const render = lazily(() => style.render({ steps: steps.slice(0, index), ...seen }));
      rendered = render;
      // Spread last: V8 builds such objects a hundred times faster.
      return {
        task,
        group: plan.group,
        attempt: plan.attempt,
        steps,
        get prompt() {
          return render();
        },
        seed: mixSeed(plan.seed, index),
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
      const parsed = style.parse(reply.response, tools);
      const { action } = parsed;
      const wellFormed = parsed.wellFormed && reply.cut !== true;
      try {
        const stepped =
          parsed.problem === undefined ? await env!.step(action) : refusal(parsed.problem);
        last = { ...stepped, observation: textOf(stepped.observation) };
      } catch (error) {
        if (error instanceof EngineFailure) throw error;
        finish("broken", error);
        return;
      }
      const { prompt } = reply;
      const render = rendered;
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
        ...(reply.strayed && { strayed: true }),
        ...(reply.encode !== undefined && { sequence: reply.encode(last.observation, last.done) }),
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
      const world = env;
      // The record may outlive the world and must not keep it alive.
      env = undefined;
      if (world !== undefined && "close" in world) await world.close();
    },
  };
}

/** What answers a tool call that cannot be read: nothing happens in the world. */
function refusal(problem: string): StepResult {
  return {
    observation: problem,
    reward: 0,
    done: false,
    info: { valid: false, success: false },
  };
}

/** Prompts are text: anything else that a world shows breaks the episode. */
function textOf(observation: unknown): string {
  if (typeof observation === "string") return observation;
  const kind = Array.isArray(observation) ? "a list" : `a value of type ${typeof observation}`;
  throw new Error(
    `the environment returned ${kind} as its observation; expected text. Images and other media are not supported: describe them in words.`,
  );
}

/** Calls a function when its value is first needed, and only once. */
function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
