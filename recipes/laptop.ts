/**
 * The default of `pawl train`: a model of 0.6 million parameters learns the household world on two cores.
 *
 * Where it leaves the paper's settings, it is for size. The model starts from nothing, so it first imitates a
 * teacher, and one that knows no more than the model sees: the expert's way straight to a thing behind a
 * closed door cannot be imitated, only guessed. Half of what it shows is the hardest family, in which at first nobody would
 * succeed: with this seed a hundred updates are enough so, with others it did not help (docs/results/laptop.md). Prompts hold the whole history, so that an episode is one
 * sequence and is read and learnt in one pass. Invalid actions cost something after normalisation only,
 * because inside it they would be all there is to learn in groups without a success. A policy that is stuck repeats
 * itself, so an episode to learn from ends after three refused actions in a row. A small entropy bonus keeps the
 * attempts of a group from becoming all alike, which would leave nothing to compare. With PPO, the critic shares the
 * policy's weights and returns reach 10, so that its squared errors count a hundredth: else they drown the policy.
 */
export const laptop = {
  env: { name: "household", rooms: 2, receptacles: 6, objects: 3 },
  prompt: { style: "compact", history: "all" },
  model: { start: "tiny", maxContext: 768 },
  warmStart: {
    teacher: "seeker",
    episodes: 4000,
    epsilon: 0.1,
    emphasis: { types: ["pick_two"], share: 0.5 },
    sft: {
      epochs: 1,
      batch: 8,
      observationWeight: 0.3,
      optimizer: { learningRate: 2e-3, schedule: "cosine", warmup: 50 },
    },
  },
  updates: 100,
  groups: 16,
  groupSize: 8,
  stepLimit: 30,
  patience: 3,
  maxTokens: 10,
  minibatch: 512,
  advantage: { name: "grpo", penalty: 0.1, penaltyPlace: "after" },
  objective: { kl: 0, entropy: 0.002, valueCoefficient: 0.01 },
  optimizer: { learningRate: 2.5e-4, schedule: "cosine", warmup: 8 },
  gradients: { every: 25 },
  evaluation: { every: 50, tasks: 128, temperature: 0.4 },
};
