/**
 * GRPO and GiGPO in PaW's table 2 (search-augmented QA), for `pawl bench observations`; the table's larger
 * model by --train.model.start Qwen2.5-7B-Instruct.
 */
import paperSearchGigpo from "./paper-search-gigpo.js";

export default {
  algorithms: ["grpo", "gigpo"],
  arms: ["plain", "paw"],
  seeds: [0, 1, 2],
  train: paperSearchGigpo,
};
