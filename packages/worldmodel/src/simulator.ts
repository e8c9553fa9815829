/**
 * A world model as an environment: any policy can act in it.
 *
 * The real world gives the goal and the first observation; from there on the model answers. An
 * episode ends when the model says that the goal is reached or that it is over, when its output is
 * degenerate (named and counted), or at the rollout's step limit. Anchoring replaces the model's
 * answer with the real one now and then.
 */
import { type Env, EnvError, type Environment, type RemoteEnv } from "@pawl/core/envs/env.js";
import { NO_TIME_LIMITS } from "@pawl/core/envs/limits.js";
import type { Policy, Reply } from "@pawl/core/rollout/policy.js";
import type { Degeneration, Prediction, WorldModel, WorldQuery } from "./model.js";

/** How a simulated episode ended, if the model ended it. */
type Ending = "success" | "over" | Degeneration;

/** When the real answer replaces the model's. */
export interface Anchor {
  /** Every this many steps; 0 is never. */
  readonly every: number;
  /** At actions that start with one of these, for example `search[`. */
  readonly actions: readonly string[];
}

/** What to simulate. */
export interface SimulatorOptions {
  readonly environment: Environment;
  readonly model: WorldModel;
  readonly anchor?: Anchor;
  /** Keep the real world alongside the simulated one, for policies that look inside. */
  readonly shadow?: boolean;
  /**
   * Break an episode whose model gives no answer, as that of a failing world, instead of ending it as
   * a failure: nobody is to learn from that.
   */
  readonly breakOnNoAnswer?: boolean;
}

/** A running simulation. */
export interface SimulatorEnv extends RemoteEnv {
  /** The real world after the same actions, if it is kept and not over. */
  readonly shadow: Env | RemoteEnv | undefined;
}

/** An environment whose answers come from a model. */
export interface Simulator {
  readonly environment: Environment;
  /** How many episodes the model ended in each way. */
  readonly endings: ReadonlyMap<Ending, number>;
  /** Steps at which the real answer was used. */
  readonly anchored: () => number;
}

/** Makes a simulator of an environment. */
export function createSimulator(options: SimulatorOptions): Simulator {
  const { environment } = options;
  const model = askTogether(options.model);
  const endings = new Map<Ending, number>();
  let anchored = 0;
  const { expert: _, seeker: __, traceWorld: ___, replayRecords: ____, ...facts } = environment;
  const create = (): SimulatorEnv =>
    createEnv({ ...options, model }, endings, () => {
      anchored += 1;
    });
  return {
    environment: {
      ...facts,
      name: `${environment.name} (simulated)`,
      limits: NO_TIME_LIMITS,
      create,
    },
    endings,
    anchored: () => anchored,
  };
}

function createEnv(
  { environment, model, anchor, shadow = false, breakOnNoAnswer = false }: SimulatorOptions,
  endings: Map<Ending, number>,
  onAnchor: () => void,
): SimulatorEnv {
  let real: Env | RemoteEnv | undefined;
  let realOver = false;
  let over = true;
  let opening = { goal: "", firstObservation: "", context: undefined as string | undefined };
  let turns: { action: string; observation: string }[] = [];
  const followed = shadow || anchor !== undefined;
  const close = async (): Promise<void> => {
    if (real !== undefined && "close" in real) await real.close();
    real = undefined;
  };
  const end = (ending: Ending): void => {
    over = true;
    endings.set(ending, (endings.get(ending) ?? 0) + 1);
  };
  const started = (): Env | RemoteEnv => {
    if (real === undefined) {
      throw new EnvError(`${environment.name} (simulated): call reset(task) first.`);
    }
    return real;
  };
  const env: SimulatorEnv = {
    get goal() {
      started();
      return opening.goal;
    },
    get taskType() {
      return started().taskType;
    },
    maxReturn: () => started().maxReturn?.(),
    get shadow() {
      return followed && !realOver ? real : undefined;
    },
    async reset(task, seed) {
      await close();
      real = environment.create();
      const firstObservation = await real.reset(task, seed);
      opening = { goal: real.goal, firstObservation, context: real.initialContext?.() };
      const tools = real.tools?.();
      if (tools !== undefined) env.tools = () => tools;
      turns = [];
      realOver = false;
      over = false;
      return firstObservation;
    },
    async step(action) {
      if (over) {
        throw new EnvError(
          `${environment.name} (simulated): step was called after the end of the episode; call reset(task).`,
        );
      }
      const truth = followed && !realOver ? await started().step(action) : undefined;
      realOver ||= truth?.done === true;
      const isAnchor =
        anchor !== undefined &&
        ((anchor.every > 0 && (turns.length + 1) % anchor.every === 0) ||
          anchor.actions.some((prefix) => action.startsWith(prefix)));
      if (isAnchor && truth !== undefined) {
        onAnchor();
        turns.push({ action, observation: truth.observation });
        if (truth.done) end(truth.info.success ? "success" : "over");
        return truth;
      }
      const [prediction] = await model.predict([{ ...opening, turns, action, continued: true }]);
      const { observation, done, success, degeneration } = prediction!;
      if (breakOnNoAnswer && degeneration !== undefined && !success) {
        end(degeneration);
        throw new EnvError(`the world model gave no answer (${degeneration}) to "${action}"`);
      }
      turns = [...turns, { action, observation }];
      const ended = done || degeneration !== undefined;
      if (ended) end(success ? "success" : (degeneration ?? "over"));
      return {
        observation,
        reward: success ? (started().maxReturn?.() ?? environment.maxReturn) : 0,
        done: ended,
        info: { valid: true, success },
      };
    },
    close,
  };
  return env;
}

/**
 * A policy that looks inside the world (an expert, or one that chooses among its actions), for a
 * simulator that keeps a shadow: it sees the real world after the same actions. If that is over and
 * the simulation continues, there is nothing left to do, and it repeats itself.
 */
export function throughShadow(policy: Policy): Policy {
  return {
    ...policy,
    async act(situations, signal) {
      const seen = situations.flatMap((situation) => {
        const { shadow } = situation.env as SimulatorEnv;
        if (shadow === undefined) return [];
        return [{ ...situation, env: shadow, admissible: shadow.admissibleActions?.() }];
      });
      const replies = (seen.length === 0 ? [] : await policy.act(seen, signal)).values();
      return situations.map(({ env, steps, format }): Reply => {
        if ((env as SimulatorEnv).shadow !== undefined) return replies.next().value!;
        return { response: format(steps.at(-1)?.action ?? "") };
      });
    },
  };
}

// Batches questions that episodes ask at the same time.

interface Waiting {
  readonly queries: readonly WorldQuery[];
  readonly signal: AbortSignal | undefined;
  resolve(predictions: readonly Prediction[]): void;
  reject(error: unknown): void;
}

/**
 * Collects the questions of one turn of the event loop: episodes in lock-step ask in the same turn.
 * Sessions of a server ask whenever they like: what comes while the model answers waits, and is then
 * asked together.
 */
function askTogether(model: WorldModel): WorldModel {
  let waiting: Waiting[] = [];
  let answering = Promise.resolve();
  const flush = async (): Promise<void> => {
    const asked = waiting;
    waiting = [];
    const signal = whenAllLeft(asked);
    try {
      const predictions = await model.predict(
        asked.flatMap(({ queries }) => queries),
        signal,
      );
      let from = 0;
      for (const { queries, resolve } of asked) {
        resolve(predictions.slice(from, from + queries.length));
        from += queries.length;
      }
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  };
  return {
    ...model,
    predict: (queries, signal) =>
      new Promise((resolve, reject) => {
        if (waiting.length === 0)
          setImmediate(() => {
            answering = answering.then(flush);
          });
        waiting.push({ queries, signal, resolve, reject });
      }),
  };
}

/** Aborted once nobody waits any more: one who leaves must not take the others' answers along. */
function whenAllLeft(asked: readonly Waiting[]): AbortSignal | undefined {
  const signals = asked.flatMap(({ signal }) => signal ?? []);
  if (signals.length < asked.length) return undefined;
  const all = new AbortController();
  const check = (): void => {
    if (signals.every(({ aborted }) => aborted)) all.abort(signals[0]!.reason);
  };
  for (const signal of signals) signal.addEventListener("abort", check, { once: true });
  check();
  return all.signal;
}
