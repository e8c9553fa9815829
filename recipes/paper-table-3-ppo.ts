/** PPO in PaW's table 3 (WebShop), for `pawl bench observations`. */
import paperWebshopPpo from "./paper-webshop-ppo.js";

export default {
  algorithms: ["ppo"],
  arms: ["plain", "paw"],
  seeds: [0, 1, 2],
  evalTasks: 500,
  train: paperWebshopPpo,
};
