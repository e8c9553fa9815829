/**
 * The default of `pawl train --model.start MODEL` in the household world (recipes/pretrained.ts):
 * a pretrained chat model of some hundred million parameters learns on a laptop, as low-rank
 * adapters on frozen weights, with episodes as conversations.
 *
 * docs/tutorials/real-model.md says where a model comes from, and what was seen.
 */
import { common } from "./laptop.js";

export default {
  ...common,
  // One room and one kind of task: what a few minutes of two cores are enough for.
  env: { ...common.env, rooms: 1, receptacles: 4, objects: 2, families: ["pick"] },
  prompt: { style: "chat" },
  // Any name that `pawl model info` takes.
  model: { start: "HuggingFaceTB/SmolLM2-135M-Instruct" },
  engine: { loraRank: 16 },
  warmStart: {
    ...common.warmStart,
    episodes: 96,
    sft: {
      epochs: 1,
      batch: 4,
      observationWeight: 0,
      // Pretrained weights are changed gently; adapters take larger steps than whole weights would.
      optimizer: { learningRate: 1e-3, schedule: "cosine", warmup: 4 },
    },
  },
  updates: 6,
  groups: 2,
  groupSize: 8,
  stepLimit: 20,
  maxTokens: 16,
  // Nothing was gained by it (docs/results/observations.md).
  paw: { loss: "off" },
  optimizer: { learningRate: 1e-4, schedule: "constant", warmup: 2 },
  gradients: { every: 0 },
  evaluation: { every: 6, splits: ["valid_unseen"], tasks: 32, temperature: 0.4 },
};
