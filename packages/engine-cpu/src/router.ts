/**
 * Distributes sampling requests over the replicas: a prompt goes to the replica that has its prefix
 * cached.
 */

import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import { checkRequests } from "@pawl/core/engine/checks.js";
import {
  type Drawn,
  EngineError,
  type Sample,
  type SampleRequest,
} from "@pawl/core/engine/engine.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { byLength, MAX_ROWS, type SampleTask } from "./batching.js";
import type { WeightSet } from "./model-weights.js";
import { createPrefixIndex } from "./prefix-index.js";
import type { Replica } from "./replica.js";
import { together } from "./replicas.js";

export interface Router {
  sample(
    requests: readonly SampleRequest[],
    onDrawn?: (drawn: Drawn) => void,
  ): Promise<readonly (readonly Sample[])[]>;
  /** Evicts every cached prefix, because the weights have changed. */
  evictAll(): void;
}

/** What the model's tokens stand for, once that was told. */
export interface Words {
  vocabulary?: Vocabulary;
}

/** The vocabulary that constraints need. */
export function knownVocabulary({ vocabulary }: Words): Vocabulary {
  if (vocabulary !== undefined) return vocabulary;
  throw new EngineError(
    "a constraint was given, but the engine does not know what its tokens stand for; call useVocabulary first",
  );
}

/** A router that always uses the current weights. */
export function createRouter(
  config: ModelConfig,
  replicas: readonly Replica[],
  weights: () => Promise<WeightSet>,
  words: Words = {},
): Router {
  const prefixes = createPrefixIndex();
  let nextHandle = 0;
  return {
    sample: async (requests, onDrawn) => {
      checkRequests(requests, config);
      const total = requests.reduce((sum, { count = 1 }) => sum + count, 0);
      // A prompt with more samples than one replica should get is prefilled once in each.
      const most = Math.min(MAX_ROWS, Math.ceil(total / replicas.length));
      // A prompt whose samples are divided is nowhere as a whole.
      const kept = requests.map(
        ({ continued = false, count = 1 }) =>
          continued !== false && continued !== "branch" && (count === 1 || count <= most),
      );
      const matched = prefixes.match(
        requests.map(({ prompt }, i) => (kept[i] ? prompt : undefined)),
      );
      const tasks = requests.flatMap((request, index) =>
        divide(request.count ?? 1, most).map((part): PlacedTask => {
          const isBranch = request.continued === "branch";
          const prefix = isBranch ? prefixes.find(request.prompt) : matched[index];
          const cacheAs = kept[index] ? nextHandle++ : undefined;
          const vocabulary = request.constraint && knownVocabulary(words);
          const task = { request, ...part, prefix, isBranch, cacheAs, vocabulary };
          return { index, replica: prefix?.replica, task };
        }),
      );
      const shares = shareTasks(tasks, replicas.length);
      const current = await weights();
      const sampled = await together(
        shares.map((share, replica) =>
          share.length === 0
            ? Promise.resolve([])
            : replicas[replica]!.sample(
                share.map(({ task }) => task),
                current,
                onDrawn && ((drawn) => onDrawn(ofRequests(drawn, share))),
              ),
        ),
      );
      const samples = requests.map((request) => new Array<Sample>(request.count ?? 1));
      shares.forEach((share, replica) => {
        share.forEach(({ index, task: { first, count, request, cacheAs } }, i) => {
          const drawn = sampled[replica]![i]!;
          drawn.forEach((sample, r) => {
            samples[index]![first + r] = sample;
          });
          if (cacheAs === undefined) return;
          // The last token was sampled but never read; several samples are not kept.
          const read = count === 1 ? drawn[0]!.tokens.slice(0, -1) : [];
          const ids = [...Array.from(request.prompt), ...read];
          prefixes.insert({ ids, replica, handle: cacheAs });
        });
      });
      return samples;
    },
    evictAll: () => prefixes.clear(),
  };
}

/** What was drawn for the tasks of a replica, by the places of their requests. */
function ofRequests(drawn: Drawn, share: readonly PlacedTask[]): Drawn {
  return drawn.map((value, at) => (at % 2 === 0 ? share[value]!.index : value));
}

/** A task, its request, and the replica it must go to because its prefix is cached there. */
interface PlacedTask {
  readonly index: number;
  readonly replica: number | undefined;
  readonly task: SampleTask;
}

/**
 * The tasks of each replica: those that must go there, and an equal share of the others, dealt out
 * by size.
 */
function shareTasks(
  tasks: readonly PlacedTask[],
  replicas: number,
): readonly (readonly PlacedTask[])[] {
  const shares = Array.from({ length: replicas }, (_, replica) =>
    tasks.filter((task) => task.replica === replica),
  );
  const free = tasks
    .filter((task) => task.replica === undefined)
    .sort((a, b) => byLength(a.task, b.task));
  for (const task of free) {
    const least = Math.min(...shares.map((share) => share.length));
    shares.find((share) => share.length === least)!.push(task);
  }
  return shares;
}

/** Chunks of at most the given size. */
function divide(
  count: number,
  most: number,
): readonly { readonly first: number; readonly count: number }[] {
  return Array.from({ length: Math.ceil(count / most) }, (_, i) => ({
    first: i * most,
    count: Math.min(most, count - i * most),
  }));
}
