/** What ScienceWorld tells a policy. */
import type { EnvPrompt } from "../../text/prompt.js";

/** A house to experiment in. */
export const sciencePrompt: EnvPrompt = {
  instructions: [
    "You carry out a science experiment in a simulated house with a kitchen, a living room, a bedroom, a bathroom, a workshop, a greenhouse, an art studio, a hallway, the outside and a foundry. You act in short commands, one at a time, where OBJ is a thing that you see, hold or know:",
    "open OBJ, close OBJ, go OBJ, look around, look at OBJ, look in OBJ, activate OBJ, deactivate OBJ, pick up OBJ, put down OBJ, move OBJ to OBJ, pour OBJ in OBJ, dunk OBJ in OBJ, mix OBJ, use OBJ on OBJ, connect OBJ to OBJ, disconnect OBJ, read OBJ, eat OBJ, flush OBJ, focus on OBJ, inventory, task, wait (ten turns), wait1 (one turn).",
    "Focus only on what the task tells you to focus on: a wrong focus ends the experiment. If a command is ambiguous, answer with the number of the one that you meant.",
  ].join("\n"),
  advice:
    "First reason step by step about what you know, what the task asks for, and which command brings you closer to it",
};
