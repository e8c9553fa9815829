/**
 * A person plays a world, or a world model with the real world following along. Undo goes back to
 * copies of the world that were made before each action. A world that runs elsewhere, where each copy
 * costs a process, is played again instead.
 */
import { checkAdmissible, checkStep, checkText, closeWorld } from "@pawl/core/envs/bounded-env.js";
import {
  type Env,
  EnvError,
  type Environment,
  isRemote,
  type RemoteEnv,
  type Task,
} from "@pawl/core/envs/env.js";
import { DEFAULT_LIMITS } from "@pawl/core/envs/limits.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import type { PromptView } from "@pawl/core/text/prompt-style.js";
import { sameOutcome } from "@pawl/worldmodel/fidelity.js";
import type { WorldModel } from "@pawl/worldmodel/model.js";
import type { PlayedStep, PlayView } from "./api.js";
import { cutText } from "./episode-view.js";

type World = Env | RemoteEnv;

/** A game that is being played. */
export interface PlaySession {
  readonly environment: Environment;
  view(): PlayView;
  /** What an agent would see now. */
  promptView(): PromptView;
  /** What it saw before the last action, that action, and what came; undefined at the start. */
  lastTurn(): LastTurn | undefined;
  step(action: string, predict: Predictor | undefined): Promise<void>;
  undo(): Promise<void>;
  hint(): Promise<string>;
  /** Closes the world and its environment. */
  close(): Promise<void>;
}

/** The last action of a game in its place. */
export interface LastTurn {
  readonly view: PromptView;
  readonly step: PlayedStep;
}

/** Answers in the world's place. */
type Predictor = WorldModel["predict"];

/** Actions that are listed. */
const MOST_ACTIONS = 500;

interface Turn extends LastTurn {
  /** The world before the action, if it is in this process. */
  readonly before: Env | undefined;
  readonly realOver: boolean;
}

/**
 * Starts a task; `inside` names the world model that answers in the world's place. The environment is
 * the session's own, and is closed with it, if it cannot be started, or if nobody waits for it any more.
 */
export async function startSession(
  id: string,
  environment: Environment,
  task: Task,
  seed: number,
  inside: string | null,
  signal: AbortSignal,
): Promise<PlaySession> {
  const limits = environment.limits ?? DEFAULT_LIMITS;
  let closed = false;
  const closeAll = async (one: World): Promise<void> => {
    closed = true;
    await closeQuietly(one);
    await environment.close?.();
  };
  let world: World = environment.create();
  let firstObservation: string;
  const leave = (): void => void closeQuietly(world);
  signal.addEventListener("abort", leave, { once: true });
  try {
    firstObservation = checkText(await world.reset(task, seed), "the first observation", limits);
    signal.throwIfAborted();
  } catch (error) {
    await closeAll(world);
    throw error;
  } finally {
    signal.removeEventListener("abort", leave);
  }
  const context = world.initialContext?.();
  const most = world.maxReturn?.() ?? environment.maxReturn;
  const turns: Turn[] = [];
  let realOver = false;
  const steps = (): readonly PlayedStep[] => turns.map(({ step }) => step);
  const over = (): boolean =>
    turns.at(-1)?.step.done === true || turns.length >= environment.stepLimit;
  /** The world as it was before the last turn. */
  const previous = async (turn: Turn): Promise<World> => {
    if (turn.before !== undefined) return turn.before;
    const again = environment.create();
    try {
      await again.reset(task, seed);
      for (const { step, realOver: wasOver } of turns.slice(0, -1))
        if (!wasOver) await again.step(step.action);
      if (closed) throw new HttpError(404, "this game is not there any more: start another");
    } catch (error) {
      await closeQuietly(again);
      throw error;
    }
    return again;
  };
  const canUndo = (): boolean =>
    turns.length > 0 && (!isRemote(world) || world.clone !== undefined);

  const promptView = (): PromptView => ({
    goal: world.goal,
    firstObservation,
    observation: turns.at(-1)?.step.observation ?? firstObservation,
    steps: steps(),
    admissible: realOver ? undefined : checkAdmissible(world.admissibleActions?.()),
    index: turns.length,
    tools: world.tools?.(),
  });

  return {
    environment,
    lastTurn: () => turns.at(-1),
    view: () => ({
      id,
      world: environment.name,
      task: task.id,
      type: task.type,
      seed,
      goal: cutText(world.goal),
      firstObservation: cutText(firstObservation),
      steps: steps().map((step) => ({ ...step, observation: cutText(step.observation).text })),
      admissible: over() || realOver ? [] : listed(world).slice(0, MOST_ACTIONS),
      tools: (world.tools?.() ?? []).map(({ name, description = "" }) => ({ name, description })),
      over: over(),
      solved: turns.at(-1)?.step.success === true,
      stepLimit: environment.stepLimit,
      canUndo: canUndo(),
      hasExpert: environment.expert !== undefined,
      inside,
      divergence: divergenceOf(steps()),
      total: turns.reduce((sum, { step }) => sum + step.reward, 0),
    }),
    promptView,
    async step(action, predict) {
      if (over()) throw new HttpError(409, "the episode is over: undo, or start another");
      const before = isRemote(world) ? undefined : world.clone();
      const view = promptView();
      const wasOver = realOver;
      const real = realOver ? undefined : checkStep(await world.step(action), limits);
      realOver ||= real?.done === true;
      const played = predict === undefined ? undefined : await predicted(action, predict);
      const shown = played ?? real!;
      turns.push({
        view,
        before,
        realOver: wasOver,
        step: {
          action,
          observation: shown.observation,
          reward: played === undefined ? real!.reward : played.success ? most : 0,
          valid: played === undefined ? real!.info.valid : true,
          done: shown.done,
          success: played === undefined ? real!.info.success : played.success,
          ...(played !== undefined && {
            real: real === undefined ? null : cutText(real.observation).text,
            same:
              real !== undefined && sameOutcome(played, { ...real, success: real.info.success }),
            ...(played.degeneration !== undefined && {
              note: `The world model's answer is no good one, and ends the game: ${played.degeneration}.`,
            }),
          }),
        },
      });
    },
    async undo() {
      const turn = turns.at(-1);
      if (turn === undefined) throw new HttpError(409, "there is nothing to take back");
      if (!canUndo())
        throw new HttpError(
          422,
          `${environment.name} cannot be copied, so no action can be taken back: start again`,
        );
      const then = await previous(turn);
      await closeQuietly(world);
      world = then;
      realOver = turn.realOver;
      turns.pop();
    },
    async hint() {
      const { expert } = environment;
      if (expert === undefined)
        throw new HttpError(422, `${environment.name} has no expert to ask`);
      if (realOver)
        throw new HttpError(409, "the real world is over, so its expert has nothing to say");
      if (isRemote(world)) await world.prepareTeacher?.();
      return expert(world);
    },
    close: () => closeAll(world),
  };

  async function predicted(action: string, predict: Predictor) {
    const [prediction] = await predict([
      { goal: world.goal, context, firstObservation, turns: steps(), action },
    ]);
    if (prediction === undefined) throw new EnvError("the world model gave no answer");
    return { ...prediction, done: prediction.done || prediction.degeneration !== undefined };
  }
}

/** A world that does not close is left behind, as in rollouts. */
const closeQuietly = (world: World): Promise<void> => closeWorld(world).catch(() => undefined);

const listed = (world: World): readonly string[] =>
  checkAdmissible(world.admissibleActions?.()) ?? [];

/** The first step, from 1, at which model and world answered differently. */
function divergenceOf(steps: readonly PlayedStep[]): number | null {
  const at = steps.findIndex(({ same }) => same === false);
  return at < 0 ? null : at + 1;
}
