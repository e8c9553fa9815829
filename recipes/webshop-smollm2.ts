/**
 * WebShop's official 1,000 products with a pretrained chat model of 135 million parameters, on one GPU: the recipe
 * for ALFWorld adapted to the shop, for the study of learning from observations (docs/results/observations.md).
 *
 * Pages come in lines and without the instruction. The expert's purchases are imitated first; its actions
 * alone are learnt:
 *   pawl rollout --env webshop --env.observations lines --env.limits.observation 3000 --policy expert \
 *     --groups 1200 --group-size 1 --step-limit 10 --prompt.style chat --seed 7 --out runs/shopper
 *   pawl serve engine &
 *   pawl train --recipe webshop-smollm2 --engine http://127.0.0.1:8000
 * WEBSHOP_DATA names the folder of the official files.
 */
import alfworld from "./alfworld-smollm2.js";

export default {
  ...alfworld,
  env: { name: "webshop", observations: "lines", limits: { observation: 3000 } },
  warmStart: { ...alfworld.warmStart, runs: ["runs/shopper"], episodes: 1000 },
  updates: 40,
  groups: 8,
  stepLimit: 10,
  maxTokens: 64,
  minibatch: 128,
  // Larger steps made the imitated agent worse: it is nearly certain of its actions from the start.
  optimizer: { ...alfworld.optimizer, learningRate: 5e-6 },
  evaluation: { every: 0, temperature: 0.4 },
};
