/** What TextWorld tells a policy. */
import type { EnvPrompt } from "../../text/prompt.js";

/** A text adventure. */
export const adventurePrompt: EnvPrompt = {
  instructions:
    "You play a text adventure. You walk through rooms, look at things and use them by short commands, one at a time.",
  advice: "First reason step by step about what is left to do and where things are",
};
