/** The tokens of an episode: one sequence for each chain of steps that continue one another. */
import type { Episode } from "../rollout/episode.js";
import { exactly } from "./spoken.js";

/** Token ids with what was sampled among them. */
export interface TokenSequence {
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
export function tokenSequences({ steps }: Episode): readonly TokenSequence[] {
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
