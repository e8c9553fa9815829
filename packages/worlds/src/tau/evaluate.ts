/**
 * What an episode is worth, computed as the originals do: a fresh world is brought into the task's
 * initial state, the conversation's calls are replayed in it, and its state is compared with that
 * after the reference solution.
 */

import type { Call, Message, TauTask } from "./tasks.js";
import { equal, PyError, parseJson, type Value } from "./value.js";
import { answerText, type World } from "./world.js";

/** How an episode came out. */
export interface Outcome {
  readonly reward: number;
  readonly dbMatch?: boolean;
  readonly assertions?: readonly boolean[];
  readonly actions?: readonly boolean[];
  readonly communicate?: readonly boolean[];
  /** The components that the reward is a product of, by name. */
  readonly breakdown?: Readonly<Record<string, number>>;
}

/** Brings a fresh world into a task's initial state, all but the conversation before it. */
export function prepare(world: World, task: TauTask): readonly string[] {
  for (const { side, data } of task.initialData) world.merge(side, data);
  return task.initialActions.map(({ side, name, given }) =>
    answerText(world.run(side, name, given, true)),
  );
}

/** Replays what a conversation changed; a result that differs from the recorded one is an error. */
export function replayMessages(world: World, messages: readonly Message[]): void {
  let at = 0;
  while (at < messages.length) {
    const message = messages[at++]!;
    if (message.role === "tool") continue;
    for (const { side, name, given } of message.calls) {
      const recorded = messages[at++];
      if (recorded?.role !== "tool")
        throw new PyError("ValueError", `the result of ${name} is missing in the conversation`);
      if (!world.changes(side, name)) continue;
      const { content } = world.call(side, name, given);
      if (!sameContent(content, recorded.content))
        throw new PyError(
          "ValueError",
          `replayed ${name} gave ${content}, recorded was ${recorded.content}`,
        );
    }
  }
  world.sync();
}

function sameContent(a: string, b: string): boolean {
  const [x, y] = [tryJson(a), tryJson(b)];
  return x !== undefined && y !== undefined ? equal(x, y) : a === b;
}

function tryJson(text: string): Value | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** The world after the reference solution, called directly: no sync, and errors do not matter. */
export function referenceWorld(
  fresh: World,
  task: TauTask,
): { world: World; errors: (string | null)[] } {
  prepare(fresh, task);
  replayMessages(fresh, task.history);
  const errors = task.reference.map(({ side, name, given }) => {
    try {
      if (fresh.changes(side, name) === undefined)
        throw new PyError("ValueError", `Tool '${name}' not found.`);
      fresh.run(side, name, given, false);
      return null;
    } catch (error) {
      if (error instanceof PyError) return error.message;
      throw error;
    }
  });
  return { world: fresh, errors };
}

/**
 * The outcome of a τ² conversation, without natural-language assertions, which are a judge's.
 * `ended` is whether one of the two ended it.
 */
export function evaluate(
  fresh: () => World,
  task: TauTask,
  messages: readonly Message[],
  ended: boolean,
): Outcome {
  if (!ended) return { reward: 0 };
  if (!task.judged) return { reward: 1 };
  const breakdown: Record<string, number> = {};
  const book = (name: string, holds: boolean): void => {
    if (task.basis.includes(name)) breakdown[name] = holds ? 1 : 0;
  };
  const predicted = fresh();
  prepare(predicted, task);
  replayMessages(predicted, messages);
  const gold = referenceWorld(fresh(), task).world;
  const { checksState } = task;
  const dbMatch = !checksState || sameState(predicted, gold);
  const assertions = task.assertions.map(({ side, name, given, expected }) => {
    return predicted.run(side, name, given, true) === expected;
  });
  if (checksState) {
    book("DB", dbMatch);
    book("ENV_ASSERTION", assertions.every(Boolean));
  }
  const made = messages.flatMap((message) => (message.role === "tool" ? [] : message.calls));
  const actions = task.reference.map((one) => made.some((call) => matches(one, call)));
  book("ACTION", actions.every(Boolean));
  const communicate = task.communicate.map((said) => saysIt(messages, said));
  book("COMMUNICATE", communicate.every(Boolean));
  const reward = Object.values(breakdown).reduce((product, one) => product * one, 1);
  return { reward, dbMatch, assertions, actions, communicate, breakdown };
}

function sameState(a: World, b: World): boolean {
  const [x, y] = [a.hashes(), b.hashes()];
  return x.agent === y.agent && x.user === y.user;
}

function matches(reference: TauTask["reference"][number], made: Call): boolean {
  if (reference.name !== made.name) return false;
  const keys = reference.compare ?? [...made.given.keys()];
  return keys.every((key) => {
    const [a, b] = [reference.given.get(key), made.given.get(key)];
    return a === undefined || b === undefined ? a === b : equal(a, b);
  });
}

function saysIt(messages: readonly Message[], said: string): boolean {
  const wanted = said.toLowerCase();
  return messages.some(
    (message) =>
      message.role === "assistant" &&
      message.content !== null &&
      message.content.toLowerCase().replaceAll(",", "").includes(wanted),
  );
}

/** The outcome of a τ conversation that is done: `said` are the agent's texts. */
export function evaluateTau1(
  fresh: () => World,
  task: TauTask,
  world: World,
  said: readonly string[],
): Outcome {
  const gold = fresh();
  for (const { name, given } of task.reference) {
    if (name !== "transfer_to_human_agents") gold.call("assistant", name, given);
  }
  const dbMatch = world.hashes().agent === gold.hashes().agent;
  const texts = said.map((one) => one.toLowerCase().replaceAll(",", ""));
  const communicate = task.communicate.map((one) =>
    texts.some((text) => text.includes(one.toLowerCase())),
  );
  return { reward: dbMatch && communicate.every(Boolean) ? 1 : 0, dbMatch, communicate };
}
