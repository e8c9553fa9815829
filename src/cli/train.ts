import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";

/** `pawl train`: says that training is yet to come. */
export const train = defineCommand({
  name: "train",
  summary: "train an agent (not in this version yet)",
  options: () => z.strictObject({}),
  examples: [["pawl rollout", "what works today: play episodes and record them"]],
  async run({ io }) {
    io.stderr.write(
      "This version of pawl cannot train yet: environments, rollouts and run folders are there, the\ntraining loop is not. Try `pawl rollout` (record episodes) or `pawl play` (play one yourself).\n",
    );
    return exitCodes.failed;
  },
});
