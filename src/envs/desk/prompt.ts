/** What the desk tells a policy. */
import type { EnvPrompt } from "../../text/env-prompt.js";
import { kindsOf, type Level, type Rules } from "./case.js";
import { POSTCODE_RULE, ruleText } from "./rules.js";

/** The numbers in the rules of the easy level. */
const EASY: Rules = { returnDays: 30, lateDays: 7, credit: 5 };

/** The words of a level. */
export function deskPrompt(level: Level): EnvPrompt {
  const rules =
    level === "easy"
      ? `These are the rules. ${kindsOf(level)
          .map((topic) => ruleText(topic, EASY))
          .join(" ")}`
      : "The rules differ from shop to shop: read those that you need. Ask the customer what only the customer knows.";
  return {
    instructions: `You work at the desk of a shop and call its tools. Look up the orders that a case is about, do what the shop's rules demand and nothing else, then close the case. ${rules}${level === "hard" ? ` ${POSTCODE_RULE}` : ""}`,
    advice: "First reason step by step about what the rules demand",
    history: "all",
  };
}
