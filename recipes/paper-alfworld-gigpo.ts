/** The paper's settings for ALFWorld with GiGPO and PaW (table 1, appendix A.1). */
import paperAlfworld from "./paper-alfworld.js";

export default {
  ...paperAlfworld,
  advantage: { ...paperAlfworld.advantage, name: "gigpo", gamma: 0.95, stepWeight: 1 },
};
