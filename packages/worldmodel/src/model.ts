/** A world model: answers actions in place of a world. */
import { askEngine } from "@pawl/core/engine/ask.js";
import { type Engine, EngineError } from "@pawl/core/engine/engine.js";
import type { Situation } from "@pawl/core/rollout/policy.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { createDialogue, type Dialogue, dialogueSequence } from "./dialogue.js";
import type { Opening, Protocol } from "./protocol.js";
import type { Outcome, Trajectory } from "./trajectory.js";

/**
 * `empty`: no text at all. `loop`: the same words over and over, never ending. `endless`: other
 * text that does not end. `context`: there was no room left to answer.
 */
export type Degeneration = "empty" | "loop" | "endless" | "context";

/** All kinds, in the order of tables. */
export const degenerations: readonly Degeneration[] = ["empty", "loop", "endless", "context"];

/** What is wrong with a sampled response, if anything. */
export function degenerationOf(
  { observation, success, ended }: Outcome & { readonly ended: boolean },
  ids: readonly number[],
): Degeneration | undefined {
  if (!ended) return repeats(ids) ? "loop" : "endless";
  return observation === "" && !success ? "empty" : undefined;
}

/** Repetitions of the last block that make a loop, and the longest block that is checked. */
const TIMES = 3;
const LONGEST = 64;

/** Whether the sequence ends in the same block three times or more. */
export function repeats(ids: readonly number[]): boolean {
  const longest = Math.min(LONGEST, Math.floor(ids.length / TIMES));
  for (let size = 1; size <= longest; size++) {
    const from = ids.length - size * TIMES;
    let same = true;
    for (let at = ids.length - 1; same && at >= from + size; at--)
      same = ids[at] === ids[at - size];
    if (same) return true;
  }
  return false;
}

/** A question to a world model: the history, and an action. */
export interface WorldQuery extends Opening {
  /** The turns so far. */
  readonly turns: readonly { readonly action: string; readonly observation: string }[];
  readonly action: string;
  /** Whether the next question will begin with this one and its answer. */
  readonly continued?: boolean;
}

/** What an action would bring in an episode. */
export const situationQuery = (situation: Situation, action: string): WorldQuery => ({
  goal: situation.goal,
  context: situation.env.initialContext?.(),
  firstObservation: situation.firstObservation,
  // What was refused never reached the world.
  turns: situation.steps.filter(({ refused }) => refused !== true),
  action,
});

/** A world model's prediction, and what is wrong with the answer, if anything. */
export interface Prediction extends Outcome {
  readonly degeneration?: Degeneration;
}

export interface WorldModel {
  readonly name: string;
  /** One prediction per question, in order: the most probable ones. */
  predict(queries: readonly WorldQuery[], signal?: AbortSignal): Promise<readonly Prediction[]>;
  /**
   * For each turn of each trajectory, whether the model would certainly give exactly this answer
   * after the real turns before it. False proves nothing: use `predict`.
   */
  certain?(trajectories: readonly Trajectory[]): Promise<readonly (readonly boolean[])[]>;
}

/** An engine's model as a world model. */
export interface EngineWorldModelOptions {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly protocol: Protocol;
  /** Longest response, in tokens. */
  readonly maxTokens: number;
  readonly name?: string;
}

/** A token above this probability is the most probable one despite rounding. */
const CERTAIN = Math.log(0.5 + 1e-4);

/** A question in tokens, up to where the answer begins. */
export const queryIds = (dialogue: Dialogue, query: WorldQuery): readonly number[] => [
  ...dialogue.opening(query),
  ...query.turns.flatMap(({ action, observation }) => [
    ...dialogue.action(action),
    ...dialogue.response({ observation, done: false, success: false }),
  ]),
  ...dialogue.action(query.action),
];

/** Answers with the engine's most probable tokens. */
export function engineWorldModel(options: EngineWorldModelOptions): WorldModel {
  const { engine, tokenizer, maxTokens } = options;
  const { maxContext, vocabularySize } = engine.capabilities;
  if (tokenizer.vocabularySize > vocabularySize) {
    throw new EngineError(
      `the tokenizer has ${tokenizer.vocabularySize} tokens and the model ${vocabularySize}: they do not belong together`,
    );
  }
  const dialogue = createDialogue(tokenizer, options.protocol);
  const promptOf = (query: WorldQuery): readonly number[] => queryIds(dialogue, query);
  return {
    name: options.name ?? "world model",
    async predict(queries) {
      const prompts = queries.map(promptOf);
      const room = (prompt: readonly number[]) => Math.min(maxTokens, maxContext - prompt.length);
      const requests = prompts.flatMap((prompt, i) =>
        room(prompt) < 1
          ? []
          : [
              {
                prompt,
                maxTokens: room(prompt),
                temperature: 0,
                stop: dialogue.stop,
                continued: queries[i]!.continued === true,
                seed: 0,
              },
            ],
      );
      const samples = (
        requests.length === 0 ? [] : await askEngine(() => engine.sample(requests))
      ).values();
      return prompts.map((prompt): Prediction => {
        if (room(prompt) < 1) {
          return { observation: "", done: true, success: false, degeneration: "context" };
        }
        const { tokens } = samples.next().value![0]!;
        const read = dialogue.read(tokens);
        const { observation, done, success } = read;
        const degeneration = degenerationOf(read, tokens);
        return { observation, done, success, ...(degeneration && { degeneration }) };
      });
    },
    async certain(trajectories) {
      const sequences = trajectories.map((one) => dialogueSequence(dialogue, one, maxContext));
      const readable = sequences.filter(({ responses }) => responses.length > 0);
      const results = await engine.forward(
        readable.map(({ ids, responses }) => {
          const targets = new Uint8Array(ids.length);
          for (const { start, end } of responses) targets.fill(1, start, end);
          return { ids, targets };
        }),
      );
      const logprobs = new Map(readable.map((sequence, i) => [sequence, results[i]!.logprobs]));
      return sequences.map((sequence) =>
        sequence.responses.map(({ start, end }) =>
          logprobs
            .get(sequence)!
            .subarray(start, end)
            .every((logprob) => logprob > CERTAIN),
        ),
      );
    },
  };
}
