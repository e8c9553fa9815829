/**
 * The paper's settings for search-augmented QA: GRPO with PaW, Qwen2.5-3B-Instruct (table 2,
 * appendix A.1).
 *
 * Needs the question files and a retriever (`docs/search-qa.md`; the paper's is E5, here
 * `--env.retriever dense --env.encoder FOLDER --env.prefixes e5`) and the model folder; without
 * `env.data` the made-up world is used. At small scale, on a laptop:
 *   pawl train --recipe paper-search --model.start tiny --prompt.style compact \
 *     --env.topk 1 --max-tokens 32 --warm-start.episodes 200 --groups 2 \
 *     --updates 3 --evaluation.splits valid_seen
 */
export default {
  env: { name: "search" },
  prompt: { style: "full", history: "all", observationEnd: false },
  model: { start: "Qwen2.5-3B-Instruct" },
  updates: 150,
  groups: 256,
  groupSize: 5,
  stepLimit: 4,
  maxTokens: 512,
  temperature: 1,
  minibatch: 512,
  advantage: { name: "grpo", penalty: 0.01, penaltyOn: "malformed" },
  objective: { kl: 0.001, entropy: 0 },
  paw: { alpha: 0.75, rho: 0.2, loss: "cmae", lambda: "adaptive" },
  optimizer: { learningRate: 1e-6, warmup: 0, weightDecay: 0.01, gradClipNorm: 1 },
  evaluation: { every: 10, splits: ["test"], tasks: 700, temperature: 0 },
};
