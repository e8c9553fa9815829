/**
 * WebShop's official 1,000 products with a pretrained chat model of 135 million parameters, on one GPU:
 * what the study of learning from observations trains with (docs/results/observations.md).
 *
 * Episodes are conversations in the model's own chat template. Pages come in lines and without the
 * instruction. The expert's purchases are imitated first; its actions alone are learnt:
 *   pawl rollout --env webshop --env.observations lines --env.limits.observation 3000 --policy expert \
 *     --groups 1200 --group-size 1 --step-limit 10 --prompt.style chat --seed 7 --out runs/shopper
 *   pawl serve engine &
 *   pawl train --config recipes/webshop-smollm2.ts --engine http://127.0.0.1:8000
 * WEBSHOP_DATA names the folder of the official files.
 */
export default {
  env: { name: "webshop", observations: "lines", limits: { observation: 3000 } },
  prompt: { style: "chat" },
  // Any name that `pawl model info` takes.
  model: { start: "HuggingFaceTB/SmolLM2-135M-Instruct" },
  warmStart: {
    runs: ["runs/shopper"],
    episodes: 1000,
    sft: {
      epochs: 2,
      batch: 16,
      observationWeight: 0,
      optimizer: { learningRate: 2e-4, schedule: "cosine", warmup: 10 },
    },
  },
  updates: 40,
  groups: 8,
  groupSize: 8,
  stepLimit: 10,
  invalidActionLimit: 4,
  maxTokens: 64,
  minibatch: 128,
  advantage: { name: "grpo", penalty: 0.1, penaltyPlace: "after" },
  objective: { kl: 0, entropy: 0 },
  // Nothing was gained by predicting observations; `pawl bench observations` switches it on arm by arm.
  paw: { loss: "off" },
  optimizer: { learningRate: 4e-5, schedule: "constant", warmup: 5 },
  gradients: { every: 10 },
  evaluation: { every: 0, splits: ["test"], tasks: 250, temperature: 0.4 },
  checkpointEvery: 20,
};
