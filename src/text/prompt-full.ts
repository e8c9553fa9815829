/** The full style: prose with every slot on its own lines, answered in `<think>` and `<action>`. */

import { recentPairs, type SlotOptions } from "./history.js";
import type {
  PieceOrigin,
  PromptFamily,
  PromptPiece,
  PromptStyle,
  PromptView,
} from "./prompt-style.js";
import { parseTagged } from "./response.js";

const openings: Readonly<Record<PromptFamily, string>> = {
  house:
    "You act in a simulated household. You move about, handle things and look around by short text commands, one at a time.",
  shop: "You shop in a simulated web store. You search for products and click what is on the page, one action at a time.",
  search:
    "You answer a question one step at a time. At every step you either ask a search engine or give your final answer.",
};

const advice: Readonly<Record<PromptFamily, string>> = {
  house: "First reason step by step about the situation",
  shop: "First reason step by step about the situation and about which action brings the purchase closest to what is wanted",
  search: "First reason about what you know and what is still missing",
};

/** Prose around the slots, for models that have been trained on prose. */
export function fullStyle(slots: SlotOptions): PromptStyle {
  const { family } = slots;
  return {
    name: `${family}/full`,
    family,
    continuing: false,
    responseEnd: "",
    render: (view) => (family === "search" ? renderSearch(view, slots) : renderWorld(view, slots)),
    parse: (response) => parseTagged(response, family),
    format: (action, thought = "") => {
      const act = family === "search" ? action : `<action>${action}</action>`;
      return `<think>${thought}</think>${act}`;
    },
    continuation: (observation) => [{ origin: "observation", text: observation }],
  };
}

function renderWorld(view: PromptView, slots: SlotOptions): readonly PromptPiece[] {
  const { pieces, say } = collector();
  say("template", `${openings[slots.family]}\n\nYour task:\n`);
  say("task", view.goal);
  sayMemory(view, say);
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
  say(
    "template",
    `\n\n${advice[slots.family]}, between <think> and </think>. Then choose one ${
      listed ? "of the actions listed above" : "action"
    } and write it, and nothing else, between <action> and </action>.`,
  );
  return pieces;
}

function renderSearch(view: PromptView, slots: SlotOptions): readonly PromptPiece[] {
  const { pieces, say } = collector();
  say("template", `${openings.search}\n\nThe question:\n`);
  say("task", view.goal);
  sayMemory(view, say);
  if (view.firstObservation !== "" && view.firstObservation !== view.goal) {
    say("template", "\n\nWhat you were given at the start:\n");
    say(view.index === 0 ? "observation" : "history", view.firstObservation);
  }
  if (view.index > 0) {
    say(
      "template",
      `\n\nYou have taken ${count(view.index, "step")} so far. What you asked stands between <search> and </search>, what the search engine returned between <information> and </information>:\n`,
    );
  }
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
    `\n\n${advice.search}, between <think> and </think>. Then do exactly one of two things. If knowledge is missing, write a query between <search> and </search>. If you are sure, write the answer alone, without explanation, between <answer> and </answer>, for example <answer>Lisbon</answer>.`,
  );
  return pieces;
}

type Say = (origin: PieceOrigin, text: string) => void;

function collector(): { readonly pieces: PromptPiece[]; readonly say: Say } {
  const pieces: PromptPiece[] = [];
  return {
    pieces,
    say: (origin, text) => {
      if (text !== "") pieces.push({ origin, text });
    },
  };
}

function sayMemory(view: PromptView, say: Say): void {
  if (view.memory === undefined || view.memory.length === 0) return;
  say("template", "\n\nWhat you noted after earlier attempts at this same task:\n");
  say("memory", view.memory.map((note) => `- ${note}`).join("\n"));
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
