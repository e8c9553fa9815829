/** What `pawl ui --play` adds: playing worlds, and asking checkpoints. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Environment, Task } from "@pawl/core/envs/env.js";
import { type EnvConfig, openEnvironment } from "@pawl/core/envs/open.js";
import { envKinds, findEnvKind } from "@pawl/core/envs/registry.js";
import { HttpError, parseJson, readBody } from "@pawl/core/http/http-server.js";
import type { PawOptions } from "@pawl/core/objectives/paw-options.js";
import { createRandom } from "@pawl/core/random.js";
import { sealedManifest } from "@pawl/core/runs/manifest.js";
import { z } from "zod";
import type { NextActions, PlayView, Surprise, WorldList } from "./api.js";
import { criticAdvantages } from "./critic-advantages.js";
import type { EpisodeIndex } from "./episode-index.js";
import { readEpisodeById } from "./episode-view.js";
import { expectStep, nextActions, surpriseOf } from "./foresee.js";
import { createModelDesk } from "./model-desk.js";
import { type PlaySession, startSession } from "./play-session.js";
import { pathInside } from "./safe-path.js";

/** What to play. */
export interface PlayOptions {
  readonly root: string;
  /** The world with options of its own, from the command line. */
  readonly env?: EnvConfig | undefined;
  /** The world that is played if none is named. */
  readonly defaultWorld: string;
  /** Games and models that nobody uses for this long are closed. */
  readonly idleMs?: number;
  /** The training that `pawl try` offers; the page chooses nothing of it. */
  readonly training?: Training;
}

/** λ of a training. */
export type Lambda = PawOptions["lambda"];

/** A training that a page can start, continue and pause. */
interface Training {
  /** Trains with another λ, if one is given, until it ends or is paused; fails if the training does. */
  train(lambda: Lambda | undefined): Promise<void>;
  pause(): void;
}

/** Answers requests below `play/`. */
export interface Play {
  handle(
    path: string,
    asked: IncomingMessage,
    indexOf: (run: string) => EpisodeIndex,
  ): Promise<unknown>;
  close(): Promise<void>;
}

/** Games at once, each with an environment of its own; the one that was used least recently makes room. */
const MOST_GAMES = 8;
const IDLE_MS = 1_800_000;
const MOST_BYTES = 2 ** 20;
/** Tasks that are offered of a split. */
const MOST_TASKS = 200;

const run = z.string().max(4096);
const bodies = {
  worlds: z.strictObject({ world: z.string().max(100).optional(), run: run.optional() }),
  start: z.strictObject({
    world: z.string().max(100).optional(),
    /** A run whose world is played. */
    run: run.optional(),
    split: z.string().max(200).optional(),
    task: z.string().max(1000).optional(),
    seed: z
      .int()
      .min(0)
      .max(2 ** 31)
      .optional(),
    /** A run whose model answers in the world's place. */
    inside: run.optional(),
    /** A game that is over with this one. */
    replaces: z.string().optional(),
  }),
  step: z.strictObject({ id: z.string(), action: z.string().max(100_000) }),
  undo: z.strictObject({ id: z.string() }),
  hint: z.strictObject({ id: z.string() }),
  think: z.strictObject({ id: z.string(), agent: run }),
  surprise: z.strictObject({ id: z.string(), agent: run }),
  train: z.strictObject({
    pause: z.boolean().optional(),
    lambda: z.union([z.literal("adaptive"), z.number().min(0)]).optional(),
  }),
  expect: z.strictObject({ run, id: z.string().max(100), step: z.int().min(0) }),
  advantages: z.strictObject({ run, id: z.string().max(100) }),
} as const;

interface Game {
  readonly session: PlaySession;
  readonly inside: string | undefined;
  /** When it was last used. */
  readonly used: number;
}

/** Opens nothing before it is asked. */
export function createPlay({
  root,
  env,
  defaultWorld,
  idleMs = IDLE_MS,
  training,
}: PlayOptions): Play {
  /** By their ids, in the order of their last use. */
  const games = new Map<string, Game>();
  let starting = 0;
  let closed = false;
  const desk = createModelDesk(idleMs);
  const end = async (id: string): Promise<void> => {
    const game = games.get(id);
    games.delete(id);
    await game?.session.close();
  };
  let running: Promise<void> | undefined;
  let nextLambda: Lambda | undefined;
  /** A training is paused for another λ, and goes on with it. */
  const keepTraining = async ({ train }: Training): Promise<void> => {
    try {
      do {
        const lambda = nextLambda;
        nextLambda = undefined;
        await train(lambda);
      } while (nextLambda !== undefined);
    } finally {
      running = undefined;
    }
  };
  const timer = setInterval(
    () => {
      const before = performance.now() - idleMs;
      for (const [id, { used }] of games) if (used < before) void end(id);
    },
    Math.max(10, idleMs / 4),
  );
  timer.unref();
  /** Closes games until another one fits. */
  const makeRoom = async (): Promise<void> => {
    while (games.size + starting >= MOST_GAMES) {
      const [oldest] = games.keys();
      if (oldest === undefined)
        throw new HttpError(503, `${MOST_GAMES} games are being started: try again later`);
      await end(oldest);
    }
  };

  const open = (world: string | undefined, of: string | undefined): Environment => {
    if (of !== undefined) {
      const config = sealedManifest(pathInside(root, of)).config.env as EnvConfig | undefined;
      if (typeof config?.name !== "string") throw new HttpError(422, `${of} has no world to play`);
      if (config.name !== env?.name) refuseStarting(config.name);
      return openEnvironment(config);
    }
    if (world === undefined || world === env?.name)
      return openEnvironment(env ?? { name: defaultWorld });
    refuseStarting(world);
    return openEnvironment({ name: world });
  };

  const gameOf = (id: string): Game => {
    const found = games.get(id);
    if (found === undefined)
      throw new HttpError(404, "this game is not there any more: start another");
    games.delete(id);
    games.set(id, { ...found, used: performance.now() });
    return found;
  };

  const handlers: {
    readonly [K in keyof typeof bodies]: (
      body: z.output<(typeof bodies)[K]>,
      indexOf: (run: string) => EpisodeIndex,
      left: AbortSignal,
    ) => Promise<unknown>;
  } = {
    async worlds({ world, run: of }): Promise<WorldList> {
      const kinds = envKinds().filter(
        ({ name, privileged }) => name === env?.name || privileged !== true,
      );
      const chosen = world ?? env?.name ?? defaultWorld;
      const list = { worlds: kinds.map(({ name, summary }) => ({ name, summary })), chosen };
      try {
        const environment = open(world, of);
        try {
          const { splits, tasks } = environment;
          const some = (split: string) => ({
            split,
            tasks: tasks(split)
              .slice(0, MOST_TASKS)
              .map(({ id, type }) => ({ id, type })),
          });
          return { ...list, splits: splits.map(some) };
        } finally {
          await environment.close?.();
        }
      } catch (error) {
        return { ...list, splits: [], problem: (error as Error).message };
      }
    },
    async start(
      { world, run: of, split, task, seed = Date.now() % 2 ** 31, inside, replaces },
      _,
      left,
    ): Promise<PlayView> {
      if (inside !== undefined) pathInside(root, inside);
      if (replaces !== undefined) await end(replaces);
      await makeRoom();
      left.throwIfAborted();
      starting += 1;
      try {
        const environment = open(world, of);
        const chosen = await taskOf(environment, split, task, seed);
        const id = randomBytes(8).toString("hex");
        const session = await startSession(id, environment, chosen, seed, inside ?? null, left);
        games.set(id, { session, inside, used: performance.now() });
        if (closed) await end(id);
        return session.view();
      } finally {
        starting -= 1;
      }
    },
    async step({ id, action }): Promise<PlayView> {
      const { session, inside } = gameOf(id);
      if (action.trim() === "")
        throw new HttpError(400, "an action is needed: type one, or choose from the list");
      if (inside === undefined) await session.step(action, undefined);
      else
        await desk.ask(pathInside(root, inside), inside, ({ worldModel }) =>
          session.step(action, (queries) => worldModel.predict(queries)),
        );
      return session.view();
    },
    async undo({ id }): Promise<PlayView> {
      const { session } = gameOf(id);
      await session.undo();
      return session.view();
    },
    hint: async ({ id }) => ({ action: await gameOf(id).session.hint() }),
    think({ id, agent }): Promise<NextActions> {
      const { session } = gameOf(id);
      return desk.ask(pathInside(root, agent), agent, (model) =>
        nextActions(model, session.environment, session.promptView()),
      );
    },
    surprise({ id, agent }): Promise<Surprise> {
      const { session } = gameOf(id);
      const last = session.lastTurn();
      if (last === undefined) throw new HttpError(409, "nothing has come yet: act first");
      return desk.ask(pathInside(root, agent), agent, (model) =>
        surpriseOf(model, session.environment, last),
      );
    },
    /** Is answered when the training has ended, so that a page hears of a failure at once. */
    async train({ pause, lambda }) {
      if (training === undefined)
        throw new HttpError(422, "this page does not train: use pawl train, or pawl try");
      nextLambda = pause ? undefined : (lambda ?? nextLambda);
      if (pause || (running !== undefined && lambda !== undefined)) training.pause();
      if (pause) return {};
      running ??= keepTraining(training);
      await running;
      return {};
    },
    async expect({ run: of, id, step }, indexOf) {
      const folder = pathInside(root, of);
      const episode = await readEpisodeById(folder, indexOf(of), id);
      return desk.ask(folder, of, (model) => expectStep(folder, model, episode, step));
    },
    async advantages({ run: of, id }, indexOf) {
      const folder = pathInside(root, of);
      const episode = await readEpisodeById(folder, indexOf(of), id);
      return desk.wait(() => criticAdvantages(folder, episode));
    },
  };

  return {
    async handle(path, asked, indexOf) {
      if (!Object.hasOwn(bodies, path))
        throw new HttpError(404, "there is nothing at this address");
      if (asked.method !== "POST") throw new HttpError(405, "this address is asked with POST");
      const name = path as keyof typeof bodies;
      const body = bodies[name].safeParse(parseJson(await readBody(asked, MOST_BYTES)));
      if (!body.success) throw new HttpError(400, z.prettifyError(body.error));
      // Nobody will ever name the game of a page that leaves while it is started.
      const left = new AbortController();
      const leave = (): void => left.abort(new Error("the page that asked has left"));
      asked.socket.once("close", leave);
      if (asked.socket.destroyed) leave();
      try {
        return await handlers[name](body.data as never, indexOf, left.signal);
      } finally {
        asked.socket.off("close", leave);
      }
    },
    async close() {
      closed = true;
      clearInterval(timer);
      await Promise.all([...games.keys()].map(end));
      await desk.close();
    },
  };
}

/** A task by its id, or any of a split; without it the environment is of no use, and is closed. */
async function taskOf(
  environment: Environment,
  split: string | undefined,
  task: string | undefined,
  seed: number,
): Promise<Task> {
  try {
    return task === undefined || task === ""
      ? createRandom(seed).pick(environment.tasks(split || environment.splits[0]!))
      : environment.task(task);
  } catch (error) {
    await environment.close?.();
    throw error;
  }
}

function refuseStarting(name: string): void {
  if (findEnvKind(name).privileged === true)
    throw new HttpError(
      422,
      `${name} starts programs or reads files of yours, so its settings come from the command line: pawl ui --play --env ${name} …`,
    );
}
