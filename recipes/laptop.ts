/**
 * The default of `pawl train`: a model of half a million parameters learns the household world on two cores.
 *
 * Where it leaves the paper's settings, it is for size: see docs/results.
 */
export const laptop = {
  env: { name: "household" },
  prompt: { style: "compact", history: 2 },
  model: { start: "tiny", maxContext: 256 },
  warmStart: {
    episodes: 400,
    sft: {
      epochs: 6,
      batch: 32,
      observationWeight: 0.3,
      optimizer: { learningRate: 2e-3, schedule: "cosine" },
    },
  },
  updates: 40,
  groups: 16,
  groupSize: 8,
  stepLimit: 30,
  maxTokens: 10,
  minibatch: 512,
  // Inside the group's spread, the penalty would be all there is to learn where every episode fails.
  advantage: { name: "grpo", penaltyPlace: "after" },
  objective: { kl: 0, entropy: 0 },
  optimizer: { learningRate: 3e-4, warmup: 8 },
  evaluation: { every: 10, tasks: 128 },
};
