/** An episode as one row: the same fields in JSON Lines and in Parquet. */
import type { Episode } from "../rollout/episode.js";
import { isConversation } from "../text/conversation.js";
import { promptText } from "../text/pieces.js";
import { type MessageJson, messageJson, toolJson } from "./chat-json.js";
import { episodeName, type Source } from "./source.js";
import { readably, spokenIn } from "./spoken.js";
import { type TokenSequence, tokenSequences } from "./token-sequences.js";

/** What happened at one step. */
interface StepJson {
  /** The whole prompt, where it is prose; in a conversation the messages say it. */
  readonly prompt?: string;
  readonly response: string;
  readonly action: string;
  readonly observation: string;
  readonly reward: number;
  readonly well_formed: boolean;
  readonly valid: boolean;
  /** The policy was made to act at random here. */
  readonly strayed: boolean;
}

/** One episode. */
export interface EpisodeJson {
  readonly id: string;
  readonly run: string;
  readonly environment: string;
  readonly task: string;
  readonly split: string;
  readonly type: string;
  readonly group: number;
  readonly attempt: number;
  readonly seed: number;
  readonly policy: string;
  readonly goal: string;
  readonly return: number;
  readonly success: boolean;
  readonly score?: number;
  readonly stop: string;
  readonly error?: string;
  readonly rewards: readonly number[];
  readonly messages: readonly MessageJson[];
  readonly tools?: readonly unknown[];
  readonly steps: readonly StepJson[];
  readonly sequences: readonly TokenSequence[];
}

/** The row of an episode. */
export function episodeJson(episode: Episode, source: Source): EpisodeJson {
  const { task, group, attempt, seed, policy, goal, success, score, stop, error } = episode;
  const spoken = spokenIn(episode, readably);
  const tools = spoken[0]?.tools;
  return {
    id: episodeName(episode),
    run: source.name,
    environment: source.environment,
    task: task.id,
    split: task.split,
    type: task.type,
    ...{ group, attempt, seed, policy, goal },
    return: episode.return,
    success,
    score,
    stop,
    error,
    rewards: episode.steps.map(({ reward }) => reward),
    messages: spoken.flatMap(({ messages }) => messages.map(messageJson)),
    tools: tools?.map(toolJson),
    steps: episode.steps.map((step) => ({
      prompt: isConversation(step.prompt) ? undefined : promptText(step.prompt),
      response: step.response,
      action: step.action,
      observation: step.observation,
      reward: step.reward,
      well_formed: step.wellFormed,
      valid: step.valid,
      strayed: step.strayed === true,
    })),
    sequences: tokenSequences(episode),
  };
}
