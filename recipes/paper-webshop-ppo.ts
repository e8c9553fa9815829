/** The paper's settings for WebShop with PPO and PaW (table 3, appendix A.1). */
import paperWebshop from "./paper-webshop.js";

export default {
  ...paperWebshop,
  groups: 128,
  groupSize: 1,
  advantage: { ...paperWebshop.advantage, name: "ppo" },
  critic: { weights: "own", learningRate: 1e-5 },
};
