/**
 * The paper's settings for ALFWorld: GRPO with PaW, Qwen2.5-1.5B-Instruct (table 1, appendix A.1).
 *
 * Needs the games (`pawl env info alfworld`) and the model folder. At small scale, on a laptop:
 *   pawl train --recipe paper-alfworld --model.start tiny --model.max-context 1536 \
 *     --prompt.style compact --max-tokens 24 --warm-start.episodes 200 --groups 2 --updates 3
 */
export default {
  env: { name: "alfworld" },
  prompt: { style: "full", history: 2, lowerCase: true, observationEnd: false },
  model: { start: "Qwen2.5-1.5B-Instruct" },
  updates: 150,
  groups: 16,
  groupSize: 8,
  stepLimit: 50,
  maxTokens: 512,
  temperature: 1,
  minibatch: 256,
  advantage: { name: "grpo", penalty: 0.1, penaltyOn: "malformed" },
  objective: { kl: 0.01, entropy: 0.001 },
  paw: { alpha: 0.75, rho: 0.2, loss: "cmae", lambda: "adaptive" },
  optimizer: { learningRate: 1e-6, warmup: 0, weightDecay: 0.01, gradClipNorm: 1 },
  evaluation: { every: 5, splits: ["valid_seen", "valid_unseen"], tasks: 140, temperature: 0.4 },
};
