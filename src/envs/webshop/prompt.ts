/** What the web store tells a policy. */
import type { EnvPrompt } from "../../text/prompt.js";

/** A web store in text. */
export const shopPrompt: EnvPrompt = {
  instructions:
    "You shop in a simulated web store. You search for products and click what is on the page, one action at a time.",
  advice:
    "First reason step by step about the situation and about which action brings the purchase closest to what is wanted",
};
