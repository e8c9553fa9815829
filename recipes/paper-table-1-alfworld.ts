/**
 * The rows with RL of PaW's table 1 on ALFWorld, for `pawl bench observations`; the table's larger model by
 * --train.model.start Qwen2.5-7B-Instruct.
 */
import paperAlfworld from "./paper-alfworld.js";

export default {
  algorithms: ["grpo", "gigpo"],
  arms: ["plain", "paw"],
  seeds: [0, 1, 2],
  evalTasks: 140,
  train: paperAlfworld,
};
