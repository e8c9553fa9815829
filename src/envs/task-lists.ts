/** Task lists by split, with look-ups and the error messages that every environment needs. */
import { didYouMean } from "../text/nearest.js";
import { EnvError, type Environment, type Task } from "./env.js";

/** The task-related part of an environment; each list is created when it is first needed. */
export function taskLists(
  name: string,
  lists: Readonly<Record<string, () => readonly Task[]>>,
): Pick<Environment, "splits" | "tasks" | "task"> {
  const splits = Object.keys(lists);
  const made = new Map<string, readonly Task[]>();
  const byId = new Map<string, Task>();
  const tasks = (split: string): readonly Task[] => {
    const known = made.get(split);
    if (known !== undefined) return known;
    const make = Object.hasOwn(lists, split) ? lists[split] : undefined;
    if (make === undefined)
      throw new EnvError(
        `${name} has no split "${split}"; it has ${splits.join(", ")}.${didYouMean(split, splits)}`,
      );
    const list = make();
    made.set(split, list);
    for (const task of list) byId.set(task.id, task);
    return list;
  };
  return {
    splits,
    tasks,
    task(id) {
      for (const split of splits) tasks(split);
      const task = byId.get(id);
      if (task !== undefined) return task;
      const examples = splits.flatMap((split) => tasks(split)[0]?.id ?? []);
      throw new EnvError(
        `${name} has no task "${id}"; its tasks are named like ${examples.join(", ")}.`,
      );
    },
  };
}

/** A list of tasks that differ only by number: `train/0`, `train/1`, … */
export function numberedTasks(split: string, count: number, type: string): () => readonly Task[] {
  return () =>
    Array.from({ length: count }, (_, index) => ({ id: `${split}/${index}`, split, type }));
}

/** Lists of tasks that differ by number, with types by it, and where a listed task stands in them. */
export function numberedLists<Split extends string>(
  name: string,
  sizes: Readonly<Record<Split, number>>,
  typeOf: (index: number) => string,
) {
  const splits = Object.entries(sizes) as [Split, number][];
  const list = (split: string, length: number) => (): readonly Task[] =>
    Array.from({ length }, (_, index) => ({ id: `${split}/${index}`, split, type: typeOf(index) }));
  const lists = taskLists(
    name,
    Object.fromEntries(splits.map(([split, size]) => [split, list(split, size)])),
  );
  return {
    lists,
    placeOf(task: Task): { readonly split: Split; readonly index: number } {
      // Looked up first, so that an unlisted task is rejected and only listed ids are parsed.
      const { id, split } = lists.task(task.id);
      return { split: split as Split, index: Number(id.slice(split.length + 1)) };
    },
  };
}
