/** What the household and ALFWorld tell a policy. */
import type { EnvPrompt } from "../../text/prompt.js";

/** A house in text. */
export const housePrompt: EnvPrompt = {
  instructions:
    "You act in a simulated household. You move about, handle things and look around by short text commands, one at a time.",
  advice: "First reason step by step about the situation",
};
