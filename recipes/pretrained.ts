/**
 * What `pawl train --model.start MODEL` takes for a pretrained chat model, in any world: the world, its
 * teacher and its splits are those of the recipe for models from scratch, the rest is what a model
 * needs that can already write.
 *
 * - Episodes are conversations in the model's own chat template.
 * - Imitation only shows the format and the world: hundreds of episodes instead of thousands.
 * - Rates are a tenth to a hundredth of those from scratch. Whole weights: as in the study of
 *   SmolLM2 (docs/results/observations.md). Adapters take larger steps.
 * - Observations are not learnt: the study saw nothing gained by it.
 * - Nobody takes over failed episodes: the warm start makes some of every group succeed.
 *
 * On an engine server the sizes are those of recipes/alfworld-smollm2.ts and all weights are trained; on
 * CPUs those of recipes/real-model.ts, with adapters of low rank.
 */
import alfworld from "./alfworld-smollm2.js";
import laptop from "./real-model.js";
import webshop from "./webshop-smollm2.js";

/** A world's recipe for models from scratch, as far as it counts here. */
export interface ScratchRecipe {
  readonly env: { readonly name: string };
  readonly split?: string;
  readonly stepLimit?: number;
  readonly maxTokens?: number;
  readonly warmStart?: {
    readonly episodes?: number;
    readonly teacher?: string;
    readonly epsilon?: number;
  };
  readonly evaluation?: { readonly splits?: readonly string[] };
}

/** What some worlds need besides. */
interface World {
  readonly maxTokens: number;
  readonly stepLimit?: number;
  readonly episodes?: number;
  readonly epsilon?: number;
  readonly groups?: number;
  readonly minibatch?: number;
  readonly rate?: number;
}

const WORLDS: Readonly<Record<string, World>> = {
  household: { maxTokens: laptop.maxTokens },
  alfworld: { maxTokens: alfworld.maxTokens, stepLimit: alfworld.stepLimit, epsilon: 0.3 },
  webshop: {
    maxTokens: webshop.maxTokens,
    stepLimit: webshop.stepLimit,
    episodes: webshop.warmStart.episodes,
    groups: webshop.groups,
    minibatch: webshop.minibatch,
    rate: webshop.optimizer.learningRate,
  },
};

/** The recipe for a pretrained chat model: where it is trained, and the rank of its adapters (0: all weights). */
export function pretrained(
  scratch: ScratchRecipe,
  { server, loraRank }: { readonly server: boolean; readonly loraRank: number },
) {
  const size = server ? alfworld : laptop;
  const rates = loraRank > 0 ? laptop : alfworld;
  // Two cores have minutes for a house of one room.
  const own: ScratchRecipe = !server && scratch.env.name === laptop.env.name ? laptop : scratch;
  const world = WORLDS[own.env.name];
  const stepLimit = world?.stepLimit ?? own.stepLimit;
  const { episodes: most = 0, teacher, epsilon = 0 } = own.warmStart ?? {};
  const { epochs, batch } = size.warmStart.sft;
  return {
    env: own.env,
    ...(own.split !== undefined && { split: own.split }),
    prompt: { style: "chat" },
    engine: { loraRank },
    warmStart:
      most === 0
        ? { episodes: 0 }
        : {
            teacher,
            epsilon: world?.epsilon ?? epsilon,
            episodes: Math.min((server && world?.episodes) || size.warmStart.episodes, most),
            sft: { epochs, batch, observationWeight: 0, optimizer: rates.warmStart.sft.optimizer },
          },
    updates: size.updates,
    groups: (server && world?.groups) || size.groups,
    groupSize: size.groupSize,
    ...(stepLimit !== undefined && { stepLimit }),
    invalidActionLimit: alfworld.invalidActionLimit,
    // A word is one token of a tokenizer made for its world, and two or three of another.
    maxTokens: world?.maxTokens ?? 2 * (own.maxTokens ?? 16),
    minibatch: (server && world?.minibatch) || size.minibatch,
    advantage: alfworld.advantage,
    objective: alfworld.objective,
    paw: { loss: "off" },
    optimizer: {
      ...rates.optimizer,
      ...(loraRank === 0 && world?.rate !== undefined && { learningRate: world.rate }),
    },
    gradients: { every: 0 },
    evaluation: {
      every: size.evaluation.every,
      ...(own.evaluation?.splits !== undefined && { splits: own.evaluation.splits }),
      tasks: size.evaluation.tasks,
      temperature: 0.4,
    },
    ...(server && { checkpointEvery: alfworld.checkpointEvery }),
  };
}

/** The rank of the adapters on CPUs. */
export const RANK = laptop.engine.loraRank;
