/**
 * An agent's program with a model, as a policy that plays whole episodes. All episodes of a batch
 * run at the same time, and the engine samples for them together.
 *
 * A run that throws, lets an error escape or takes too long is a broken episode; so is one without
 * a call to train. One that runs into its limit of calls or into the end of the context, or that
 * throws because of what the model wrote, has failed: its reward is 0.
 */
import { setMaxListeners } from "node:events";
import { inspect } from "node:util";
import { vocabularyOf } from "@pawl/core/constraint/vocabulary.js";
import { askEngine } from "@pawl/core/engine/ask.js";
import type { ActingEngine } from "@pawl/core/engine/engine.js";
import type { EnvLimits } from "@pawl/core/envs/limits.js";
import { DEFAULT_LIMITS } from "@pawl/core/envs/limits.js";
import { disregarding, notOwned, runOwned } from "@pawl/core/processes/escaped-errors.js";
import { type Episode, type EpisodePlan, reasonOf, type Step } from "@pawl/core/rollout/episode.js";
import type { Policy } from "@pawl/core/rollout/policy.js";
import { createScheduler, type Sampler } from "@pawl/core/rollout/scheduler.js";
import type { TokenForm } from "@pawl/core/text/encode.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { CallForm } from "@pawl/core/text/tool.js";
import { withoutSecrets } from "@pawl/core/trust/secrets.js";
import type { Agent, AgentReward, AgentRun, AgentTask } from "./agent.js";
import type { AgentEnvironment } from "./agent-environment.js";
import { agentSteps, goalOf, withReward } from "./agent-episode.js";
import { pawlModel } from "./ai-sdk-model.js";
import { repeatAnswers } from "./repeated-answers.js";
import {
  type Author,
  answerMessage,
  createSession,
  type RecordedCall,
  type RecordedSession,
} from "./session.js";

/** The agent, its model and how that samples. */
export interface AgentPolicyOptions {
  readonly environment: AgentEnvironment;
  readonly engine: ActingEngine;
  readonly tokenizer: Tokenizer;
  readonly sampling: { readonly maxTokens: number; readonly temperature: number };
  readonly callForm?: CallForm | undefined;
  /** How text becomes tokens. */
  readonly tokens?: TokenForm | undefined;
  /**
   * Episodes that are played in lock-step (default: all of them). With 1, each has its own pace, and
   * the engine must put their requests together by itself.
   */
  readonly batch?: number | undefined;
  /** Who answers instead of the engine's model; an episode for which that fails is broken. */
  readonly author?: Author | undefined;
}

/** How often a program that is refused may go on asking. */
const MOST_REFUSALS = 100;

/** The agent as a policy. */
export function agentPolicy(options: AgentPolicyOptions): Policy {
  const { environment, engine, tokenizer, sampling, callForm, tokens } = options;
  engine.useVocabulary?.(() => vocabularyOf(tokenizer));
  let failure: { readonly error: unknown } | undefined;
  const asked: ActingEngine = {
    capabilities: engine.capabilities,
    async sample(requests, options, onDrawn) {
      // A program may hide the engine's error, and the remaining episodes would be a biased sample.
      if (failure !== undefined) throw failure.error;
      try {
        // Who was told of tokens once is not told of them again.
        let hear = onDrawn;
        const ask = () => {
          const heard = hear;
          hear = undefined;
          return engine.sample(requests, options, heard);
        };
        return await notOwned(() => askEngine(ask));
      } catch (error) {
        failure = { error };
        throw error;
      }
    },
  };
  const scheduler = createScheduler(
    asked,
    options.batch === 1 ? { pace: "own", batchesItself: true } : { pace: "together" },
  );
  return {
    name: "agent",
    batch: options.batch ?? Number.POSITIVE_INFINITY,
    async act() {
      throw new Error(`agent ${environment.name} plays its episodes by itself`);
    },
    async play(plan) {
      const { limits = DEFAULT_LIMITS } = environment;
      const place = scheduler.join();
      const stop = new AbortController();
      // Every call listens to it: many at once are no leak.
      setMaxListeners(0, stop.signal);
      const abort = (reason: unknown): void => disregarding(() => stop.abort(reason));
      const interrupt = (): void => abort(plan.signal!.reason);
      plan.signal?.addEventListener("abort", interrupt, { once: true });
      const tooLate = (): void => abort(plan.late!.reason);
      plan.late?.addEventListener("abort", tooLate, { once: true });
      const watch = startStopwatch(limits);
      let unanswered: { readonly error: unknown } | undefined;
      const { author } = options;
      const sampler: Sampler = {
        sample: (request, signal, hear) =>
          watch.pause(() => place.sample(request, either(signal, stop.signal), hear)),
      };
      const repeated = plan.fork && repeatAnswers(plan.fork, sampler);
      const session = createSession({
        ...(author !== undefined && {
          author: (request, how) =>
            watch.pause(async () => {
              try {
                return await author(request, {
                  ...how,
                  signal: either(how.signal, stop.signal),
                });
              } catch (error) {
                // A program may hide it, and go on with nothing.
                unanswered ??= { error };
                throw error;
              }
            }),
        }),
        sampler: repeated ?? sampler,
        tokenizer,
        maxContext: engine.capabilities.maxContext,
        constraints: engine.capabilities.constraints,
        seed: plan.seed,
        sampling,
        fixed: true,
        callForm,
        tokens,
        callLimit: plan.stepLimit,
        refusalLimit: MOST_REFUSALS,
      });
      try {
        const end = await endOf(environment, session, plan, { watch, signal: stop.signal });
        plan.signal?.throwIfAborted();
        if (failure !== undefined) throw failure.error;
        const odd =
          end.stop === "broken" ? undefined : repeated?.problemOf(agentSteps(session.calls));
        const error = unanswered === undefined ? odd : unanswered.error;
        if (error === undefined) return episodeOf(environment, session, plan, end);
        const broken = { ...FAILED, stop: "broken", error: reasonOf(error) } as const;
        return episodeOf(environment, session, plan, broken);
      } finally {
        watch.stop();
        place.leave();
        session.end();
        plan.signal?.removeEventListener("abort", interrupt);
        plan.late?.removeEventListener("abort", tooLate);
        // Tells a program that is still running that its result is no longer needed.
        abort(new Error("the episode is over"));
      }
    },
  };
}

const either = (one: AbortSignal | undefined, other: AbortSignal): AbortSignal =>
  one === undefined ? other : AbortSignal.any([one, other]);

/** How a run ended. */
type End = Pick<Episode, "return" | "success" | "stop" | "score" | "error" | "why" | "result">;

const FAILED = { return: 0, success: false } as const;

/** Runs the agent and asks for its reward, until that is done, takes too long or is interrupted. */
async function endOf(
  { agent, given, maxReturn }: AgentEnvironment,
  session: RecordedSession,
  { task }: EpisodePlan,
  { watch, signal }: { readonly watch: Stopwatch; readonly signal: AbortSignal },
): Promise<End> {
  const own = given(task);
  const model = pawlModel(session);
  const run = async (): Promise<End> => {
    let result: unknown;
    try {
      const running = runOwned(() => agent.run(own, model, signal));
      result = await Promise.race([running, session.exhausted]);
    } catch (error) {
      // Who could not even begin has not failed: its first conversation is too long.
      if (session.calls.length === 0) throw error;
      if (session.limit !== undefined) return { ...FAILED, stop: session.limit };
      if (!isModelFault(error, model.modelId)) throw error;
      return { ...FAILED, stop: "done", error: reasonOf(error) };
    }
    session.end();
    const worth = await runOwned(() => agent.reward(runOf(own, result, session), signal));
    return {
      ...readReward(worth, maxReturn),
      stop: session.limit ?? "done",
      ...(result !== undefined && { result: recorded(result) }),
    };
  };
  try {
    return await Promise.race([run(), watch.overdue, interruption(signal)]);
  } catch (error) {
    return { ...FAILED, stop: "broken", error: reasonOf(error) };
  }
}

function interruption(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function runOf(task: AgentTask, result: unknown, { calls }: RecordedSession): AgentRun<AgentTask> {
  const last = calls.at(-1);
  const messages = last === undefined ? [] : [...last.messages, answerMessage(last.answer)];
  return { task, result, calls: [...calls], messages };
}

function readReward(worth: unknown, maxReturn: number): Omit<End, "stop"> {
  const given = typeof worth === "number" ? { reward: worth } : worth;
  const { reward, score, why, ...rest } = (given ?? {}) as Partial<AgentReward>;
  const { success = Number.isFinite(reward) && reward! >= maxReturn } = rest;
  if (
    !Number.isFinite(reward) ||
    typeof success !== "boolean" ||
    !(score === undefined || Number.isFinite(score)) ||
    !(why === undefined || typeof why === "string")
  )
    throw new Error(
      `the agent's reward is ${inspect(worth, { breakLength: Infinity })}: expected a finite number, or { reward, why, success, score } with a text as why and finite numbers`,
    );
  if (reward! > maxReturn)
    throw new Error(`the agent's reward is ${reward}, above its maxReturn of ${maxReturn}`);
  return {
    return: reward!,
    success,
    ...(score !== undefined && { score }),
    ...(why !== undefined && { why: reasonOf(why) }),
  };
}

/** Longer values, such as whole files, are recorded as the beginning of their text. */
const LONGEST_VALUE = 20_000;

/** A value of the user's program as JSON, without secrets; what is no JSON as a text. */
function recorded(value: unknown): unknown {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // A circle, or a number too large for JSON.
  }
  const isJson = text !== undefined && text.length <= LONGEST_VALUE;
  const written = withoutSecrets(text ?? inspect(value));
  return isJson ? JSON.parse(written) : written.slice(0, LONGEST_VALUE);
}

function episodeOf(
  { agent, given }: AgentEnvironment,
  { calls, lost }: RecordedSession,
  { task, group, attempt, seed, policy, fork }: EpisodePlan,
  end: End,
): Episode {
  const left = agent.filter === undefined ? [] : calls.filter((call) => !isTurn(agent, call));
  const filtered = left.reduce((sum, { sample }) => sum + sample.tokens.length, 0);
  const untrained = { ...lost, ...(filtered > 0 && { filtered }) };
  const whole = {
    ...{ task, group, attempt, seed, policy, goal: goalOf(calls), firstObservation: "" },
    ...(fork && { branch: { from: fork.episode.attempt, step: fork.step } }),
    given: recorded(given(task)),
    ...(Object.keys(untrained).length > 0 && { untrained }),
  };
  const broken = { ...whole, ...FAILED, stop: "broken" } as const;
  let steps: readonly Step[];
  try {
    steps = withReward(agentSteps(calls, agent.filter), end.return);
  } catch (error) {
    return { ...broken, steps: agentSteps(calls), error: reasonOf(error) };
  }
  if (steps.length > 0 || end.stop === "broken") return { ...whole, steps, ...end };
  const error =
    calls.length === 0
      ? "the agent did not call the model"
      : "the agent's filter leaves no call to train";
  return { ...broken, steps, error };
}

/** Whether a call is trained; a filter that throws breaks the episode elsewhere. */
function isTurn({ filter }: Agent, call: RecordedCall): boolean {
  try {
    return filter?.(call) ?? true;
  } catch {
    return true;
  }
}

/**
 * What the AI SDK throws about an answer that cannot be used: a failure of the policy, to be learnt
 * from. Recognised by the SDK's own markers, because it is the user's dependency and not ours.
 */
const ABOUT_OUTPUT: readonly string[] = [
  "AI_NoObjectGeneratedError",
  "AI_NoOutputGeneratedError",
  "AI_NoSuchToolError",
  "AI_ToolChoiceViolationError",
  "AI_InvalidToolInputError",
  "AI_JSONParseError",
  "AI_TypeValidationError",
];

/** Causes of causes that are looked at: an error may be its own cause. */
const DEEPEST = 10;

/** Where such an error says which model wrote it. */
interface Blaming extends Error {
  readonly response?: { readonly modelId?: unknown };
  readonly modelId?: unknown;
}

/** Whether the output of the model of this name caused an error, itself or as its cause. */
export function isModelFault(error: unknown, modelId: string): boolean {
  let at = error;
  for (let depth = 0; depth < DEEPEST && at instanceof Error; depth++, at = at.cause) {
    if (!isMarked(at, "vercel.ai.error")) continue;
    // Another model may have been asked too, such as a judge.
    const { response, modelId: own } = at as Blaming;
    const blamed = response?.modelId ?? own;
    const isOurs = blamed === undefined || blamed === modelId;
    // What else the SDK refuses, the program gave it: a bad prompt is caused by a validation, too.
    return isOurs && ABOUT_OUTPUT.some((name) => isMarked(at, `vercel.ai.error.${name}`));
  }
  return false;
}

function isMarked(error: unknown, marker: string): boolean {
  return (error as Readonly<Record<symbol, unknown>>)[Symbol.for(marker)] === true;
}

/** Runs while the program does, and stands still while it waits for the model. */
export interface Stopwatch {
  /** Stands still until this is over. */
  pause<T>(wait: () => Promise<T>): Promise<T>;
  /** Rejects when the program has taken too long. */
  readonly overdue: Promise<never>;
  stop(): void;
}

/** Starts a stopwatch; without the time of an episode or between two calls it never ends. */
export function startStopwatch({
  stepSeconds,
  episodeSeconds,
}: Pick<EnvLimits, "stepSeconds" | "episodeSeconds">): Stopwatch {
  let spent = 0;
  let waiting = 0;
  let since = performance.now();
  let timer: NodeJS.Timeout | undefined;
  let tooLate: (error: Error) => void = () => undefined;
  const overdue = new Promise<never>((_, reject) => {
    tooLate = reject;
  });
  // It may be rejected when nothing awaits it.
  overdue.catch(() => undefined);
  const start = (): void => {
    since = performance.now();
    const left = episodeSeconds - spent;
    const message =
      left < stepSeconds
        ? `the agent took longer than env.limits.episodeSeconds, ${episodeSeconds} s, for the episode`
        : `the agent did not ask the model for longer than env.limits.stepSeconds, ${stepSeconds} s`;
    timer = setTimeout(
      () => tooLate(new Error(message)),
      Math.min(1000 * Math.max(0, Math.min(stepSeconds, left)), LONGEST_MS),
    );
  };
  start();
  return {
    overdue,
    async pause(wait) {
      if (waiting++ === 0) {
        clearTimeout(timer);
        spent += (performance.now() - since) / 1000;
      }
      try {
        return await wait();
      } finally {
        if (--waiting === 0) start();
      }
    },
    stop() {
      clearTimeout(timer);
      waiting = Number.POSITIVE_INFINITY;
    },
  };
}

/** The longest that a timer waits. */
const LONGEST_MS = 2 ** 31 - 1;
