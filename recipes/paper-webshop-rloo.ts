/** The paper's settings for WebShop with RLOO and PaW (table 3), in the reference's form of RLOO. */
import paperWebshop from "./paper-webshop.js";

export default {
  ...paperWebshop,
  advantage: { ...paperWebshop.advantage, name: "rloo", per: "step" },
};
