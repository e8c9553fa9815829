/**
 * RLOO in PaW's table 3 (WebShop), for `pawl bench observations`. The table's other models are GRPO's:
 * --algorithms grpo --train.model.start Qwen3-1.7B, Llama3.2-3B-Instruct or Qwen2.5-14B-Instruct.
 */
import paperWebshopRloo from "./paper-webshop-rloo.js";

export default {
  algorithms: ["rloo"],
  arms: ["plain", "paw"],
  seeds: [0, 1, 2],
  evalTasks: 500,
  train: paperWebshopRloo,
};
