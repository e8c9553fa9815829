/**
 * The paper's settings for WebShop: GRPO with PaW, Qwen2.5-1.5B-Instruct (table 1, appendix A.1).
 *
 * Needs the catalogue (`pawl env info webshop`) and the model folder. At small scale, on a laptop:
 *   pawl train --recipe paper-webshop --model.start tiny --model.max-context 2048 \
 *     --prompt.style compact --max-tokens 32 --warm-start.episodes 200 --groups 2 --updates 3
 */
export default {
  env: { name: "webshop", observations: "after-instruction" },
  prompt: { style: "full", history: 2, lowerCase: true, observationEnd: false },
  model: { start: "Qwen2.5-1.5B-Instruct" },
  updates: 150,
  groups: 16,
  groupSize: 8,
  stepLimit: 15,
  maxTokens: 512,
  temperature: 1,
  minibatch: 64,
  advantage: { name: "grpo", penalty: 0.1, penaltyOn: "malformed" },
  objective: { kl: 0.01, entropy: 0.001 },
  paw: { alpha: 0.75, rho: 0.2, loss: "cmae", lambda: "adaptive" },
  optimizer: { learningRate: 1e-6, warmup: 0, weightDecay: 0.01, gradClipNorm: 1 },
  evaluation: { every: 5, splits: ["test"], tasks: 128, temperature: 0.4 },
};
