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
  let nextHandle = 0;
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
        divide(request.count ?? 1, most).map((part): PlacedTask => {
          const remembered = recalled[index];
          const keep = kept[index] ? nextHandle++ : undefined;
          return { index, lane: remembered?.lane, task: { request, ...part, remembered, keep } };
        }),
      );
      const shares = shareTasks(tasks, lanes.length);
      const current = weights();
      const sampled = await together(
        shares.map((share, lane) =>
          share.length === 0
            ? Promise.resolve([])
            : lanes[lane]!.sample(
                share.map(({ task }) => task),
                current,
              ),
        ),
      );
      const samples = requests.map((request) => new Array<Sample>(request.count ?? 1));
      shares.forEach((share, lane) => {
        share.forEach(({ index, task: { first, request, keep } }, i) => {
          const found = sampled[lane]![i]!;
          found.forEach((sample, r) => {
            samples[index]![first + r] = sample;
          });
          if (keep === undefined) return;
          // The last token was sampled but never read.
          const ids = [...Array.from(request.prompt), ...found[0]!.tokens.slice(0, -1)];
          memory.remember({ ids, lane, handle: keep });
        });
      });
      return samples;
    },
    forget: () => memory.forget(),
  };
}

/** A task, the request it belongs to, and the lane it must go to because that has read its beginning. */
interface PlacedTask {
  readonly index: number;
  readonly lane: number | undefined;
  readonly task: SampleTask;
}

/** The tasks of each lane: those that must go there, and of the others, dealt out in order of size, equal shares. */
function shareTasks(
  tasks: readonly PlacedTask[],
  lanes: number,
): readonly (readonly PlacedTask[])[] {
  const shares = Array.from({ length: lanes }, (_, lane) =>
    tasks.filter((task) => task.lane === lane),
  );
  const free = tasks
    .filter((task) => task.lane === undefined)
    .sort((a, b) => byLength(a.task, b.task));
  for (const task of free) {
    const least = Math.min(...shares.map((share) => share.length));
    shares.find((share) => share.length === least)!.push(task);
  }
  return shares;
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
