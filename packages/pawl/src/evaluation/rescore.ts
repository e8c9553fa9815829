/** Stored episodes judged by another reward function. Nothing is played, and no record changes. */
import type { ChatMessage } from "@pawl/agents/chat.js";
import { asReward, type FinishedTask, type Reward } from "@pawl/agents/tasks/rewards.js";
import type { TaskRecord } from "@pawl/agents/tasks/task-record.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { UserError } from "@pawl/core/errors.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { readCall } from "@pawl/core/text/tool.js";
import { readably, spokenIn } from "../exports/spoken.js";

/** A finished episode as a reward sees it, with the whole record. */
export interface StoredEpisode extends FinishedTask {
  readonly observations: readonly string[];
  /** What was said to the model and what it said. */
  readonly messages: readonly ChatMessage[];
  readonly episode: Episode;
}

/** Judges a stored episode, at once or later. */
export type StoredReward = (
  episode: StoredEpisode,
  signal?: AbortSignal,
) => number | Reward | Promise<number | Reward>;

/** What an episode was worth, and what it is worth now. */
export interface Rescored {
  readonly group: number;
  readonly attempt: number;
  readonly task: string;
  readonly type: string;
  readonly before: { readonly return: number; readonly success: boolean; readonly score?: number };
  readonly after: { readonly return: number; readonly success: boolean; readonly score?: number };
}

/** Where tasks are found again, and what success is. */
export interface RescoreOptions {
  readonly reward: StoredReward;
  /** Gives tasks all that their environment knows of them; without it, what was recorded. */
  readonly environment?: Pick<Environment, "task" | "maxReturn"> | undefined;
  readonly signal?: AbortSignal;
}

/** Judges one episode; undefined for a broken one, which nobody can judge. */
export async function rescore(
  episode: Episode,
  { reward, environment, signal }: RescoreOptions,
): Promise<Rescored | undefined> {
  if (episode.stop === "broken") return undefined;
  const { task, group, attempt, success, score } = episode;
  const place = `episode ${group}.${attempt} (task ${task.id})`;
  let judged: Reward;
  try {
    const given = await reward(storedEpisode(episode, environment), signal);
    judged = asReward(given, environment?.maxReturn ?? 1);
  } catch (error) {
    signal?.throwIfAborted();
    // A judge that fails is no verdict: stop, and never take it for a reward of 0.
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError(`the reward failed for ${place}: ${why}`, { cause: error });
  }
  if (!Number.isFinite(judged.reward))
    throw new UserError(`the reward of ${place} is ${judged.reward}; expected a finite number`);
  const scored = (value: number | undefined) => (value === undefined ? {} : { score: value });
  return {
    ...{ group, attempt, task: task.id, type: task.type },
    before: { return: episode.return, success, ...scored(score) },
    after: { return: judged.reward, success: judged.success, ...scored(judged.score) },
  };
}

function storedEpisode(
  episode: Episode,
  environment: RescoreOptions["environment"],
): StoredEpisode {
  const { task, goal, firstObservation, steps } = episode;
  const known = environment?.task(task.id) ?? task;
  const last = steps.at(-1);
  const call = readCall(last?.action ?? "");
  const isAnswer = call?.tool === "answer" && "answer" in call.arguments;
  return {
    task: { ...known, goal, observation: firstObservation } as TaskRecord,
    actions: steps.map(({ action }) => action),
    answer: isAnswer ? String(call.arguments.answer) : (last?.action ?? ""),
    observations: steps.slice(0, isAnswer ? -1 : undefined).map(({ observation }) => observation),
    messages: spokenIn(episode, readably).flatMap(({ messages }) => messages),
    call() {
      throw new UserError(
        "it calls a tool, but the world of a stored episode is gone: judge what was recorded",
      );
    },
    episode,
  };
}
