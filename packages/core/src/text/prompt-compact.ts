/**
 * The compact style: the contents alone, each after a marker that is a single token.
 *
 * A whole episode is one stream, `<|goal|>… <|see|>… <|do|>… <|see|>…`: an action ends with the
 * `<|see|>` of the observation it causes, and an observation with the `<|do|>` of the next action.
 * So a step's prompt, response and observation together are, token for token, the beginning of the
 * next step's prompt (with the whole history), and policy and world model know where to stop.
 */
import {
  type EnvPrompt,
  type PromptPiece,
  type PromptStyle,
  type PromptView,
  recentPairs,
  type SlotOptions,
} from "./prompt-style.js";
import { answersOf } from "./response.js";

/** The markers of the compact style; each is one token in a tokenizer for small models. */
export const markers = {
  goal: "<|goal|>",
  memory: "<|note|>",
  actions: "<|can|>",
  observation: "<|see|>",
  action: "<|do|>",
  /** After the last observation of an episode. */
  end: "<|end|>",
} as const;

/** The markers as pieces, shared by all prompts because each contains many. */
const markerPieces = new Map(
  Object.values(markers).map((text): [string, PromptPiece] => [text, { origin: "template", text }]),
);

/** The contents without prose, for models that have not been trained on prose. */
export function compactStyle(prompt: EnvPrompt, slots: SlotOptions): PromptStyle {
  const { parse } = answersOf(prompt, "line", Object.values(markers));
  return {
    name: "compact",
    continuing: slots.history === "all" && !slots.admissible,
    responseEnd: markers.observation,
    history: slots.history,
    render: (view) => render(view, slots),
    parse,
    format: (action) => prompt.format?.(action) ?? action,
    continuation: (observation, done) => [
      ...(observation === "" ? [] : [{ origin: "observation" as const, text: observation }]),
      markerPieces.get(done ? markers.end : markers.action)!,
    ],
  };
}

function render(view: PromptView, slots: SlotOptions): readonly PromptPiece[] {
  const pieces: PromptPiece[] = [];
  const slot = (marker: string, origin: PromptPiece["origin"], text: string) => {
    pieces.push(markerPieces.get(marker)!);
    if (text !== "") pieces.push({ origin, text });
  };
  slot(markers.goal, "task", view.goal);
  for (const note of view.memory ?? []) slot(markers.memory, "memory", note);
  // Before the history, so that the stream of observations and actions is not interrupted.
  if (slots.admissible && view.admissible !== undefined) {
    slot(markers.actions, "actions", view.admissible.join("\n"));
  }
  for (const pair of recentPairs(view, slots.history)) {
    slot(markers.observation, "history", pair.observation);
    slot(markers.action, "history", pair.action);
  }
  slot(markers.observation, "observation", view.observation);
  pieces.push(markerPieces.get(markers.action)!);
  return pieces;
}
