/**
 * The paper's settings for WebShop with GiGPO and PaW (table 1, appendix A.1, which names the
 * normalised version; verl-agent only subtracts the mean there: --advantage.norm mean).
 */
import paperWebshop from "./paper-webshop.js";

export default {
  ...paperWebshop,
  advantage: { ...paperWebshop.advantage, name: "gigpo", gamma: 0.95, stepWeight: 1 },
};
