/**
 * The rows with RL of PaW's table 1 on WebShop, for `pawl bench observations`; the table's larger model by
 * --train.model.start Qwen2.5-7B-Instruct.
 */
import paperWebshop from "./paper-webshop.js";

export default {
  algorithms: ["grpo", "gigpo"],
  arms: ["plain", "paw"],
  seeds: [0, 1, 2],
  evalTasks: 500,
  train: paperWebshop,
};
