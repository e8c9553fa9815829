/** What search QA tells a policy: a question, and what was asked and found so far. */
import type { SlotOptions } from "../../text/history.js";
import { collector, count, sayMemory } from "../../text/pieces.js";
import type { EnvPrompt, PromptPiece, PromptView } from "../../text/prompt.js";

const instructions =
  "You answer a question one step at a time. At every step you either ask a search engine or give your final answer.";

/** Questions with a search engine. */
export const searchPrompt: EnvPrompt = {
  instructions,
  answer:
    "If knowledge is missing, write a query between <search> and </search>. If you are sure, write the answer alone, without explanation, between <answer> and </answer>.",
  history: "all",
  actionTags: ["search", "answer"],
  around: ["<information>", "</information>"],
  render,
};

function render(view: PromptView, slots: SlotOptions): readonly PromptPiece[] {
  const { pieces, say } = collector();
  say("template", `${instructions}\n\nThe question:\n`);
  say("task", view.goal);
  sayMemory(view, say);
  if (view.firstObservation !== "" && view.firstObservation !== view.goal) {
    say("template", "\n\nWhat you were given at the start:\n");
    say(view.index === 0 ? "observation" : "history", view.firstObservation);
  }
  if (view.index > 0)
    say(
      "template",
      `\n\nYou have taken ${count(view.index, "step")} so far. What you asked stands between <search> and </search>, what the search engine returned between <information> and </information>:\n`,
    );
  // The latest result is the current observation and is shown for any history length.
  const length = slots.history === "all" ? view.steps.length : Math.max(1, slots.history);
  for (const step of view.steps.slice(-length)) {
    say("template", "\n");
    say("history", step.action);
    say("template", "\n<information>");
    say(step === view.steps.at(-1) ? "observation" : "history", step.observation);
    say("template", "</information>");
  }
  say(
    "template",
    "\n\nFirst reason about what you know and what is still missing, between <think> and </think>. Then do exactly one of two things. If knowledge is missing, write a query between <search> and </search>. If you are sure, write the answer alone, without explanation, between <answer> and </answer>, for example <answer>Lisbon</answer>.",
  );
  return pieces;
}
