/**
 * A pretrained chat model of some hundred million parameters learns the household world on a laptop:
 * low-rank adapters on frozen weights, episodes as conversations.
 *
 *   pawl train --config recipes/real-model.ts --model.start MODEL
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
      // Pretrained weights are changed gently; adapters take larger steps than whole weights would.
      optimizer: { learningRate: 1e-3, schedule: "cosine", warmup: 4 },
    },
  },
  updates: 6,
  groups: 2,
  groupSize: 8,
  stepLimit: 20,
  maxTokens: 16,
  optimizer: { learningRate: 1e-4, schedule: "constant", warmup: 2 },
  gradients: { every: 0 },
  evaluation: { every: 6, splits: ["valid_unseen"], tasks: 32, temperature: 0.4 },
};
