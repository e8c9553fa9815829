/**
 * The paper's settings for ALFWorld with PPO and PaW (appendix A.1): 128 episodes of as many tasks,
 * and a critic with a learning rate of its own.
 */
import paperAlfworld from "./paper-alfworld.js";

export default {
  ...paperAlfworld,
  groups: 128,
  groupSize: 1,
  advantage: { ...paperAlfworld.advantage, name: "ppo" },
  critic: { weights: "own", learningRate: 1e-5 },
};
