/**
 * A world of tasks that are answered: each is a record, an episode is one answer or a few, and a
 * function says at its end what it was worth. Replies and rewards may take their time.
 */
import { z } from "zod";
import { EnvError, type Environment, type EnvKind, type RemoteEnv } from "../env.js";
import { taskLists } from "../task-lists.js";
import { asReward, type RewardFunction } from "./rewards.js";
import { readTasks, type TaskRecord, type TaskSource } from "./task-record.js";

/** What an environment of tasks consists of. */
export interface TaskWorld {
  readonly name: string;
  /** Where the tasks of each split come from. */
  readonly splits: Readonly<Record<string, TaskSource>>;
  readonly reward: RewardFunction;
  /** Most actions of an episode (default: 1). */
  readonly turns?: number;
  /** What is seen after an action that is not the last; undefined ends the episode there. */
  readonly reply?: (
    episode: { readonly task: TaskRecord; readonly actions: readonly string[] },
    signal?: AbortSignal,
  ) => string | undefined | Promise<string | undefined>;
  /** The largest reward (default: 1). */
  readonly maxReturn?: number;
  /** A teacher to imitate, if there is one. */
  readonly expert?: (task: TaskRecord, actions: readonly string[]) => string;
}

/** A kind of environment from tasks and a reward. */
export function defineTaskEnv(world: TaskWorld & { readonly summary: string }): EnvKind {
  const { name, summary } = world;
  return { name, summary, options: z.strictObject({}), open: () => openTasks(world) };
}

/** Opens an environment of tasks. */
export function openTasks(world: TaskWorld): Environment {
  const { name, turns = 1, maxReturn = 1, expert } = world;
  const sources = Object.entries(world.splits);
  const lists = taskLists(
    name,
    Object.fromEntries(sources.map(([split, source]) => [split, () => readTasks(split, source)])),
  );
  return {
    ...lists,
    name,
    stepLimit: turns,
    maxReturn,
    prompt: { instructions: "You are given a task. Answer it." },
    freeText: true,
    create: () => createEnv(world, (id) => lists.task(id) as TaskRecord),
    ...(expert !== undefined && {
      expert: (env: RemoteEnv) => {
        const { record, actions } = (env as TaskRun).progress();
        return expert(record, actions);
      },
    }),
  };
}

/** A running environment, with what a teacher sees. */
interface TaskRun extends RemoteEnv {
  progress(): { readonly record: TaskRecord; readonly actions: readonly string[] };
}

function createEnv(world: TaskWorld, find: (id: string) => TaskRecord): TaskRun {
  const { name, turns = 1, reply, reward, maxReturn = 1 } = world;
  let record: TaskRecord | undefined;
  let over = true;
  let actions: readonly string[] = [];
  const started = (): TaskRecord => {
    if (record === undefined) throw new EnvError(`${name}: call reset(task) first`);
    return record;
  };
  return {
    get goal() {
      return started().goal;
    },
    get taskType() {
      return started().type;
    },
    progress: () => ({ record: started(), actions }),
    async reset({ id }) {
      record = find(id);
      over = false;
      actions = [];
      return record.observation;
    },
    async step(action, signal) {
      const task = started();
      if (over) throw new EnvError(`${name}: the episode is over; call reset(task)`);
      actions = [...actions, action];
      const seen = actions.length < turns ? await reply?.({ task, actions }, signal) : undefined;
      if (seen !== undefined)
        return {
          observation: seen,
          reward: 0,
          done: false,
          info: { valid: true, success: false },
        };
      over = true;
      const given = await reward({ task, actions, answer: action }, signal);
      const { observation = "Done.", ...judged } = asReward(given, maxReturn);
      const { success, score } = judged;
      const info = { valid: true, success, score };
      return { observation, reward: judged.reward, done: true, info };
    },
    close: async () => undefined,
  };
}
