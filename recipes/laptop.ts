/**
 * The default of `pawl train`: a model of half a million parameters learns the household world on two cores.
 *
 * Where it leaves the paper's settings, it is for size: the model starts from nothing, so it first imitates
 * expert episodes until it can name what it sees; prompts hold the whole history, so that an episode is one
 * sequence and is read and learnt in one pass; there is no penalty for invalid actions, which in groups without
 * a success would be all there is to learn.
 */
export const laptop = {
  env: { name: "household" },
  prompt: { style: "compact", history: "all" },
  model: { start: "tiny", maxContext: 768 },
  warmStart: {
    episodes: 2000,
    sft: {
      epochs: 8,
      batch: 8,
      observationWeight: 0.3,
      optimizer: { learningRate: 2e-3, schedule: "cosine", warmup: 50 },
    },
  },
  updates: 20,
  groups: 16,
  groupSize: 8,
  stepLimit: 30,
  maxTokens: 10,
  minibatch: 512,
  advantage: { name: "grpo", penalty: 0 },
  objective: { kl: 0, entropy: 0 },
  optimizer: { learningRate: 1e-4, warmup: 8 },
  evaluation: { every: 5, tasks: 128, temperature: 1 },
};
