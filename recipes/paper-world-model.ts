/**
 * The settings of WM-SFT in "From Word to World", for `pawl wm train --data …`: Qwen2.5-7B, whole
 * batches of 128 trajectories, a constant learning rate after 10 steps.
 */
export default {
  model: { start: "Qwen2.5-7B" },
  epochs: 5,
  batch: 128,
  optimizer: { learningRate: 1e-5, schedule: "constant", warmup: 10, gradClipNorm: 100 },
};
