/** Sampling: shares requests among the lanes, and remembers what they read for prompts that go on from there. */

import type { Sample, SampleRequest } from "../engine.js";
import type { ModelConfig } from "../weights/model-config.js";
import { checkRequests } from "./checks.js";
import { byLength, MAX_ROWS, type SampleTask } from "./decoder.js";
import type { Lane } from "./lane.js";
import { together } from "./lanes.js";
import { createMemory } from "./memory.js";
import type { WeightSet } from "./weight-set.js";

export interface Sampler {
  sample(requests: readonly SampleRequest[]): Promise<readonly (readonly Sample[])[]>;
  /** Forgets what was read with weights that are no more. */
  forget(): void;
}

/** A sampler that always uses the weights as they are when it is called. */
export function createSampler(
  config: ModelConfig,
  lanes: readonly Lane[],
  weights: () => WeightSet,
): Sampler {
  const memory = createMemory();
  return {
    sample: async (requests) => {
      checkRequests(requests, config);
      const total = requests.reduce((sum, { count = 1 }) => sum + count, 0);
      // A prompt with more samples than one lane should have is read once in each.
      const most = Math.min(MAX_ROWS, Math.ceil(total / lanes.length));
      const kept = requests.map(({ continued = false, count = 1 }) => continued && count === 1);
      const recalled = memory.recall(
        requests.map(({ prompt }, i) => (kept[i] ? prompt : undefined)),
      );
      const tasks = requests.flatMap((request, index) =>
        divide(request.count ?? 1, most).map((part): SampleTask & { readonly index: number } => {
          return { index, request, ...part, remembered: recalled[index], keep: kept[index]! };
        }),
      );
      // Dealt out in order of size, so that the lanes have equal shares.
      const order = [...tasks].sort(
        (a, b) =>
          Number(a.remembered !== undefined) - Number(b.remembered !== undefined) || byLength(a, b),
      );
      const shares = lanes.map((_, lane) => order.filter((__, i) => i % lanes.length === lane));
      const current = weights();
      const sampled = await together(
        shares.map((share, lane) =>
          share.length === 0 ? Promise.resolve([]) : lanes[lane]!.sample(share, current),
        ),
      );
      const samples = requests.map((request) => new Array<Sample>(request.count ?? 1));
      shares.forEach((share, lane) => {
        share.forEach(({ index, first, request }, i) => {
          const group = sampled[lane]![i]!;
          group.samples.forEach((sample, r) => {
            samples[index]![first + r] = sample;
          });
          if (group.cache === undefined) return;
          // The last token was sampled but never read.
          const ids = [...Array.from(request.prompt), ...group.samples[0]!.tokens.slice(0, -1)];
          memory.remember({ ids, cache: group.cache });
        });
      });
      return samples;
    },
    forget: () => memory.forget(),
  };
}

/** Parts of at most so many. */
function divide(
  count: number,
  most: number,
): readonly { readonly first: number; readonly count: number }[] {
  return Array.from({ length: Math.ceil(count / most) }, (_, i) => ({
    first: i * most,
    count: Math.min(most, count - i * most),
  }));
}
