/**
 * ALFWorld from scratch on one GPU: a model of 20 million parameters, all 3,553 training games, no
 * pretraining.
 *
 * The laptop recipe's methods at thirty times its size (recipes/laptop.ts gives the reasons): the
 * whole history in compact prompts, so that an episode is one sequence; imitation first; the
 * penalty after normalisation. ALFWorld's only teacher sees the true state and walks straight to
 * objects, so it often takes random actions: after them, it shows what to do when an object is not
 * where one looked. It is slow to find its way back, so it plays beforehand:
 *   for seed in 0 1 2 3 4; do pawl rollout --env alfworld --env.order 0 --policy expert \
 *     --policy.epsilon 0.3 --groups 3553 --group-size 1 --step-limit 30 --prompt.style compact \
 *     --prompt.history all --seed $seed --out runs/teacher-$seed; done
 * Then, on a machine with a GPU:
 *   pawl serve engine &
 *   pawl train --recipe alfworld-scratch --engine http://127.0.0.1:8000
 */
export const alfworldScratch = {
  env: { name: "alfworld", order: 0 },
  prompt: { style: "compact", history: "all" },
  model: { start: "base", maxContext: 1536 },
  warmStart: {
    runs: [0, 1, 2, 3, 4].map((seed) => `runs/teacher-${seed}`),
    episodes: 17_000,
    sft: {
      epochs: 4,
      batch: 32,
      // Its results were measured with one mean over both.
      observationWeight: 0.3,
      mean: "together",
      optimizer: { learningRate: 1e-3, schedule: "cosine", warmup: 50 },
    },
  },
  updates: 100,
  groups: 16,
  groupSize: 8,
  // The original allows 50; the expert needs 6 on average.
  stepLimit: 30,
  invalidActionLimit: 4,
  maxTokens: 12,
  minibatch: 512,
  advantage: { name: "grpo", penalty: 0.1, penaltyPlace: "after" },
  objective: { kl: 0, entropy: 0 },
  paw: { loss: "cmae" },
  optimizer: { learningRate: 1e-4, schedule: "cosine", warmup: 10 },
  gradients: { every: 10 },
  evaluation: { every: 20, tasks: 128, temperature: 1 },
  checkpointEvery: 20,
};

export default alfworldScratch;
