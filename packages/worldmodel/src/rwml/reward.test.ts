import { describe, expect, it } from "vitest";
import { VERDICT_REQUEST, verdictOf } from "./reward.js";

const yes = [
  "YES",
  "yes",
  "Yes.",
  "YES. There is no difference.",
  "Yes, no object is missing.",
  "Yes - no change.",
  "Yes it does. No detail differs.",
  "**Yes**",
  "**YES** — there is no mug in either.",
  '"Yes"',
  "`yes`",
  "VERDICT: YES",
  "Verdict: **YES**",
  "**Verdict:** yes",
  "There is no mug in the real answer, and no mug in the prediction.\nVERDICT: YES",
  "No detail is missing and no detail is added.\n\nAnswer: yes",
  "Both say so. The answer is yes.",
  "Final answer: YES.",
  '{"reason": "no difference", "verdict": "yes"}',
  "The answer is \\boxed{YES}.",
  "Nothing is missing, no thing was added.\n\nYes",
  "They agree, so yes.",
  "Is a thing missing? It is not. I would say: yes",
  "<think>No, wait: VERDICT: NO</think>YES",
  "<think>no</think>\n\nThere is no difference.\nVERDICT: YES",
  "YES or NO: YES",
  `I was told: "${VERDICT_REQUEST}"\nVERDICT: YES`,
];

const no = [
  "NO",
  "no",
  "No.",
  "NO. Yes would need the mug to be there.",
  "No, the mug is missing.",
  "No it does not say where the mug is.",
  "No: the drawer is open.",
  "No\n\nThe prediction lacks the mug.",
  "**No**",
  "**No.** It names yesterday's room.",
  "Answer: no",
  "Answer: **No**",
  "Verdict - NO",
  "At first sight yes, but the drawer is closed.\nVERDICT: NO",
  "One could say yes to most of it.\n\nAnswer: no",
  "The prediction adds a knife. So no.",
  "The prediction adds a knife. No!",
  "The prediction adds a knife; the answer is no.",
  "Yes, the room is right. But the mug is missing.\nFinal verdict: NO",
  "<think>YES</think>NO",
];

const neither = [
  "",
  "I cannot say.",
  "There is no difference.",
  "No difference between the two.",
  "No objects are missing.",
  "No longer there.",
  "No. 5 is missing from the list.",
  "Yes and no.",
  "Yes/No",
  "YES or NO",
  "VERDICT: YES or NO",
  "Answer with YES or NO.",
  "YES\nNO",
  "VERDICT: YES\nVERDICT: NO",
  "Yes, most of it. But the mug? No.",
  "The notes say nothing about yesterday.",
  "Nothing is known. Noise.",
  "<think>VERDICT: YES, I think, but let me",
  "True",
];

describe("the verdict of a judge", () => {
  it.each(yes)("yes: %j", (answer) => expect(verdictOf(answer)).toBe(true));
  it.each(no)("no: %j", (answer) => expect(verdictOf(answer)).toBe(false));
  it.each(neither)("neither: %j", (answer) => expect(verdictOf(answer)).toBeUndefined());
});
