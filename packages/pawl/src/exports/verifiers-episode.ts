/**
 * Episodes as lines of verifiers' `traces.jsonl` (its v1 traces).
 *
 * A node is a message with the tokens that it adds. Joined from a root to a leaf, the nodes' tokens
 * are exactly those of one sequence, so a prompt that does not continue the last one's tokens starts
 * at a root of its own. The tokens of an opening stand on its last message.
 */
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import type { Sequence, Span } from "@pawl/core/text/sequence.js";
import { drawnLogprobs } from "@pawl/core/text/sequence.js";
import { episodeName, type Source } from "./source.js";
import { exactly, type Spoken, type SpokenMessage, spokenIn } from "./spoken.js";

/** One line of the file. */
export function verifiersEpisode(episode: Episode, source: Source): unknown {
  const { task, goal, stop, error, success, score } = episode;
  const whole = stop !== "broken";
  const errors = whole ? [] : [{ type: "BrokenEpisode", message: error ?? "no reason given" }];
  const dispatched = {
    type: source.environment,
    data: { id: task.id, name: task.type, description: goal, split: task.split },
    key: task.id,
  };
  const spoken = spokenIn(episode, exactly);
  const id = `${source.name}/${episodeName(episode)}`;
  return {
    id,
    env: { id: source.environment },
    task: dispatched,
    group: { id: String(episode.group) },
    run: source.manifest.kind === "eval" ? { type: "eval", id: source.name } : undefined,
    ok: whole,
    errors,
    traces: [
      {
        version: 1,
        id,
        task: dispatched,
        agent: { config: { model: source.player }, name: "agent", trainable: true },
        tools: spoken[0]?.tools ?? [],
        nodes: nodesOf(spoken, episode.steps, Date.parse(source.manifest.createdAt) / 1000),
        // A broken episode was never scored: null, not 0.
        rewards: { return: whole ? { score: episode.return, weight: 1 } : null },
        metrics: {
          success: whole ? Number(success) : null,
          score,
          steps: episode.steps.length,
        },
        info: {
          seed: episode.seed,
          attempt: episode.attempt,
          policy: episode.policy,
          rewards: episode.steps.map(({ reward }) => reward),
        },
        is_completed: whole,
        ok: whole,
        stop_condition: stop,
        errors,
      },
    ],
  };
}

interface Node {
  readonly parent?: number;
  readonly tools?: unknown;
  readonly message: unknown;
  readonly sampled: boolean;
  readonly timestamp: number;
  readonly token_ids: readonly number[];
  readonly mask: readonly boolean[];
  readonly is_content: readonly boolean[];
  readonly logprobs: readonly number[];
}

function nodesOf(
  conversations: readonly Spoken[],
  steps: readonly Step[],
  timestamp: number,
): readonly Node[] {
  const nodes: Node[] = [];
  for (const { messages, tools } of conversations) {
    const lastOpening = messages.findIndex(({ step }) => step !== undefined) - 1;
    let end = 0;
    for (const [at, message] of messages.entries()) {
      const slice = tokensOf(message, at === lastOpening, messages, at, steps, end);
      end = slice.end;
      nodes.push({
        parent: at > 0 ? nodes.length - 1 : undefined,
        tools: at === 0 ? tools : undefined,
        message: messageNode(message),
        sampled: message.step !== undefined,
        timestamp,
        ...slice.tokens,
      });
    }
  }
  return nodes;
}

type Tokens = Pick<Node, "token_ids" | "mask" | "is_content" | "logprobs">;

const NOTHING: Tokens = { token_ids: [], mask: [], is_content: [], logprobs: [] };

/** The tokens from `start` on that belong to a message, and where the next one's begin. */
function tokensOf(
  message: SpokenMessage,
  opens: boolean,
  messages: readonly SpokenMessage[],
  at: number,
  steps: readonly Step[],
  start: number,
): { readonly tokens: Tokens; readonly end: number } {
  const cut = (sequence: Sequence, end: number, logprobs: readonly number[] = []) => ({
    tokens: {
      token_ids: sequence.ids.slice(start, end),
      mask: flags(sequence, start, end, ({ kind }) => kind === "action"),
      is_content: flags(sequence, start, end, ({ origin }) => origin !== "template"),
      logprobs,
    },
    end,
  });
  if (message.step !== undefined) {
    const { sequence } = steps[message.step]!;
    const action = sequence?.spans.findLast(({ kind }) => kind === "action");
    if (sequence === undefined || action === undefined) return { tokens: NOTHING, end: start };
    return cut(sequence, action.end, drawnLogprobs(sequence) ?? []);
  }
  // Messages between two responses: the last of them has all tokens up to the next response.
  const next = messages[at + 1];
  if (next !== undefined && next.step === undefined && !opens)
    return { tokens: NOTHING, end: start };
  const step = next?.step ?? message.answersStep;
  const sequence = step === undefined ? undefined : steps[step]!.sequence;
  if (sequence === undefined) return { tokens: NOTHING, end: start };
  const action = sequence.spans.findLast(({ kind }) => kind === "action");
  return cut(
    sequence,
    next === undefined || action === undefined ? sequence.ids.length : action.start,
  );
}

function flags(
  { spans }: Sequence,
  start: number,
  end: number,
  is: (span: Span) => boolean,
): readonly boolean[] {
  const result = new Array<boolean>(Math.max(0, end - start)).fill(false);
  for (const span of spans)
    if (is(span)) result.fill(true, Math.max(0, span.start - start), Math.max(0, span.end - start));
  return result;
}

function messageNode({ role, content, reasoning, calls, answers }: SpokenMessage): unknown {
  return {
    role,
    content,
    reasoning_content: reasoning,
    tool_calls: calls?.map(({ id, tool, arguments: text }) => ({
      id,
      name: tool,
      arguments: text,
    })),
    tool_call_id: role === "tool" ? answers : undefined,
  };
}
