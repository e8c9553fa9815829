/**
 * The default of `pawl train`: a model of 0.6 million parameters learns the household world on two
 * cores.
 *
 * It departs from the paper's settings where its size requires it.
 * - The model starts from random weights, so it first imitates a teacher, one that knows no more
 *   than the model sees: the expert's direct path to an object behind a closed door cannot be
 *   imitated, only guessed.
 * - Prompts hold the whole history, so an episode is one sequence and is processed in one pass.
 * - GiGPO compares steps as well as episodes, which helps if the episodes of a group pass through
 *   the same states.
 * - The teacher takes over some of the failed episodes and is imitated from there. RL alone learns
 *   nothing from groups in which every episode fails.
 * - Invalid actions are penalised only after normalisation. Before it, in groups without a success
 *   the penalty would be all there is to learn.
 * - A stuck policy repeats itself, so a training episode ends after three invalid actions in a row.
 * - A small entropy bonus keeps the attempts of a group from becoming identical, which would leave
 *   nothing to compare.
 *
 * docs/results/laptop.md has its results over seeds, and what else was tried.
 */
/** What the small recipes share. */
export const common = {
  env: { name: "household", rooms: 2, receptacles: 6, objects: 3 },
  prompt: { style: "compact", history: "all" },
  model: { start: "tiny", maxContext: 768 },
  warmStart: {
    teacher: "seeker",
    episodes: 4500,
    epsilon: 0.1,
    sft: {
      epochs: 1,
      batch: 8,
      // Its results were measured with one mean over both.
      observationWeight: 0.3,
      mean: "together",
      optimizer: { learningRate: 2e-3, schedule: "cosine", warmup: 50 },
    },
  },
  updates: 100,
  groups: 16,
  groupSize: 8,
  stepLimit: 30,
  invalidActionLimit: 3,
  maxTokens: 10,
  minibatch: 512,
  advantage: { name: "grpo", penalty: 0.1, penaltyPlace: "after" },
  objective: { kl: 0, entropy: 0.002 },
  paw: { loss: "cmae" },
  optimizer: { learningRate: 2.5e-4, schedule: "cosine", warmup: 8 },
  gradients: { every: 25 },
  evaluation: { every: 50, tasks: 128, temperature: 0.4 },
};

/** The default of `pawl train`. */
export const laptop = {
  ...common,
  warmStart: { ...common.warmStart, episodes: 5500 },
  updates: 105,
  advantage: { ...common.advantage, name: "gigpo" },
  corrections: { episodes: 24, teacher: "seeker", weight: 0.5 },
};
