/** An episode as one row: the same fields in JSON Lines and in Parquet. */
import type { Episode } from "@pawl/core/rollout/episode.js";
import { isConversation } from "@pawl/core/text/conversation.js";
import { promptText } from "@pawl/core/text/prompt-style.js";
import { type MessageJson, messageJson, toolJson } from "./sharegpt-lines.js";
import { episodeName, type Source } from "./source.js";
import { exactly, readably, spokenIn } from "./spoken.js";

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
  /** An agent's tool calls, and how long it waited. */
  readonly calls?: Episode["steps"][number]["calls"];
  readonly seconds?: number;
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
  /** An agent's task and what it returned, as JSON, and why its reward is what it is. */
  readonly given?: string;
  readonly result?: string;
  readonly why?: string;
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
    given: jsonOf(episode.given),
    result: jsonOf(episode.result),
    why: episode.why,
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
      calls: step.calls,
      seconds: step.seconds,
    })),
    sequences: tokenSequences(episode),
  };
}

const jsonOf = (value: unknown): string | undefined =>
  value === undefined ? undefined : JSON.stringify(value);

/** Token ids with what was sampled among them. */
interface TokenSequence {
  /** The steps in it, from 0. */
  readonly steps: readonly number[];
  readonly token_ids: readonly number[];
  /** As long as `token_ids`: 1 for tokens that the model sampled. */
  readonly sampled: readonly number[];
  /** As long as `token_ids`: 1 for tokens of the environment's answers. */
  readonly observed: readonly number[];
  /** One for each sampled token, at temperature 1; absent if they were not recorded. */
  readonly logprobs?: readonly number[];
  /** The same under the distribution that was sampled from, where that is another. */
  readonly sampled_logprobs?: readonly number[];
  readonly temperature: number;
}

/** The sequences of an episode; none if its policy was not our own model. */
function tokenSequences({ steps }: Episode): readonly TokenSequence[] {
  const chains: number[][] = [];
  for (const [at, step] of steps.entries()) {
    if (step.sequence === undefined) continue;
    const last = chains.at(-1)?.at(-1);
    if (last === at - 1 && exactly(steps[last]!, step)) chains.at(-1)!.push(at);
    else chains.push([at]);
  }
  return chains.map((chain) => {
    const sequences = chain.map((at) => steps[at]!.sequence!);
    const { ids, temperature = 1 } = sequences.at(-1)!;
    const sampled = new Array<number>(ids.length).fill(0);
    const observed = new Array<number>(ids.length).fill(0);
    for (const { spans } of sequences)
      for (const { kind, start, end } of spans) {
        if (kind === "action") sampled.fill(1, start, end);
        if (kind === "observation") observed.fill(1, start, end);
      }
    const joined = (values: readonly (readonly number[] | undefined)[]) =>
      values.every((one) => one !== undefined) ? (values.flat() as number[]) : undefined;
    return {
      steps: chain,
      token_ids: ids,
      sampled,
      observed,
      logprobs: joined(sequences.map((one) => one.logprobs)),
      sampled_logprobs: joined(sequences.map((one) => one.sampledLogprobs)),
      temperature,
    };
  });
}
