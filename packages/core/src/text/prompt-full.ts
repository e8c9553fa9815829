/**
 * The full style: prose with every slot on its own lines, answered in `<think>` and `<action>`. An
 * environment gives its opening and advice, or renders all of it its own way.
 */
import {
  collector,
  count,
  type EnvPrompt,
  neutral,
  type PromptPiece,
  type PromptStyle,
  type PromptView,
  recentPairs,
  type SlotOptions,
  sayMemory,
} from "./prompt-style.js";
import type { Answers } from "./response.js";
import { toolsText } from "./tool.js";

/** Prose around the slots, for models that have been trained on prose. */
export function fullStyle(prompt: EnvPrompt, slots: SlotOptions, answers: Answers): PromptStyle {
  return {
    name: "full",
    continuing: false,
    responseEnd: "",
    around: prompt.around,
    history: slots.history,
    render: (view) => prompt.render?.(view, slots) ?? renderFull(view, prompt, slots),
    parse: answers.parse,
    format: answers.format,
    continuation: (observation) => [{ origin: "observation", text: observation }],
  };
}

function renderFull(
  view: PromptView,
  prompt: EnvPrompt,
  slots: SlotOptions,
): readonly PromptPiece[] {
  const { instructions = neutral.instructions, advice = neutral.advice } = prompt;
  const { pieces, say } = collector();
  say("template", `${instructions}\n\nYour task:\n`);
  say("task", view.goal);
  sayMemory(view, say);
  if (view.tools !== undefined) {
    say("template", "\n\n");
    say("tools", toolsText(view.tools));
    say("template", '\nAn action is a call: {"tool": NAME, "arguments": {…}}.');
  }
  const pairs = recentPairs(view, slots.history);
  if (view.index > 0) {
    say("template", `\n\nYou have taken ${count(view.index, "step")} so far.`);
  }
  if (pairs.length > 0) {
    const latest = pairs.length === 1 ? "observation" : `${pairs.length} observations`;
    say("template", ` The latest ${latest} and what you did then:\n`);
    for (const pair of pairs) {
      say("template", `\nObservation ${pair.number}:\n`);
      say("history", pair.observation);
      say("template", `\nAction ${pair.number}:\n`);
      say("history", pair.action);
    }
  }
  say("template", `\n\nThis is step ${view.index + 1}. You now observe:\n`);
  say("observation", view.observation);
  const listed = slots.admissible && view.admissible !== undefined;
  if (listed) {
    say("template", "\n\nActions you can take now:\n");
    say("actions", view.admissible.join("\n"));
  }
  const own = (prompt.parse ?? prompt.actionTags) === undefined ? undefined : prompt.answer;
  say(
    "template",
    `\n\n${
      own ??
      `${advice}, between <think> and </think>. Then choose one ${
        listed ? "of the actions listed above" : "action"
      } and write it, and nothing else, between <action> and </action>.`
    }`,
  );
  return pieces;
}
