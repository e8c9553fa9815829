/**
 * ALFWorld with a pretrained chat model of 135 million parameters, on one GPU: what the study of
 * learning from observations trains with (docs/results/observations.md).
 *
 * Episodes are conversations in the model's own chat template. Imitation comes first, because the
 * model as published hardly ever finishes a task. The teacher strays (ε 0.3), so that it shows what
 * to do when an object is not where one looked. It plays beforehand, and its actions alone are learnt:
 *   pawl rollout --env alfworld --env.order 0 --policy expert --policy.epsilon 0.3 --groups 1500 \
 *     --group-size 1 --step-limit 30 --prompt.style chat --seed 7 --out runs/teacher
 *   pawl serve engine &
 *   pawl train --recipe alfworld-smollm2 --engine http://127.0.0.1:8000
 */
export default {
  env: { name: "alfworld", order: 0 },
  prompt: { style: "chat" },
  // Any name that `pawl model info` takes.
  model: { start: "HuggingFaceTB/SmolLM2-135M-Instruct" },
  warmStart: {
    runs: ["runs/teacher"],
    episodes: 500,
    sft: {
      epochs: 2,
      batch: 16,
      observationWeight: 0,
      optimizer: { learningRate: 2e-4, schedule: "cosine", warmup: 10 },
    },
  },
  updates: 60,
  groups: 16,
  groupSize: 8,
  stepLimit: 30,
  invalidActionLimit: 4,
  maxTokens: 24,
  minibatch: 512,
  advantage: { name: "grpo", penalty: 0.1, penaltyPlace: "after" },
  objective: { kl: 0, entropy: 0 },
  // Nothing was gained by predicting observations; `pawl bench observations` switches it on arm by arm.
  paw: { loss: "off" },
  optimizer: { learningRate: 2e-5, schedule: "constant", warmup: 5 },
  gradients: { every: 10 },
  evaluation: { every: 20, splits: ["valid_train"], tasks: 128, temperature: 0.4 },
  checkpointEvery: 20,
};
