/**
 * The chat style: an episode is one conversation.
 *
 * The environment's instructions are the system message; goal and first observation are the user's
 * first; then every response is a message of the assistant, kept as it was written, and every
 * observation the user's or the tool's answer to it. Messages are only ever added, so the tokens of
 * a step are the beginning of the next step's prompt, if the model's chat template allows it
 * (`chat-frame.ts`). That ends where the history is cut, and where admissible actions are listed:
 * only the last message lists them.
 */
import {
  collector,
  type EnvPrompt,
  neutral,
  type PromptPiece,
  type PromptStyle,
  type PromptView,
  type Role,
  type SlotOptions,
  sayMemory,
} from "./prompt-style.js";
import {
  PromptError,
  type PromptTemplate,
  renderSection,
  sectionText,
  turnParts,
} from "./prompt-template.js";
import type { Answers } from "./response.js";
import type { CallForm, Tool } from "./tool.js";
import { formatAction, howToCall, parseCall } from "./tool-calls.js";

/** How a conversation is held. */
export interface ChatOptions {
  readonly slots: SlotOptions;
  readonly answers: Answers;
  /** How answers are asked for. */
  readonly answer: string;
  readonly calls: CallForm;
  readonly template?: PromptTemplate | undefined;
  readonly promptTokens?: number | undefined;
}

/** The contents of a `tools` piece. */
export interface ToolsPiece {
  readonly tools: readonly Tool[];
  /** How to call, for models whose chat template does not say. */
  readonly how: string;
}

/** A conversation, for chat models. */
export function chatStyle(prompt: EnvPrompt, options: ChatOptions): PromptStyle {
  const { slots, answers, calls, template = {}, promptTokens } = options;
  if (template.step !== undefined && template.first === undefined)
    throw new PromptError(
      "prompt.template: the chat style needs a section [first] for the first message; there is none",
    );
  const turn = template.turn && turnParts(template.turn);
  const [before, after] = turn?.around ?? prompt.around ?? ["", ""];
  const lists = turn?.lists ?? slots.admissible;
  const listed = (admissible: readonly string[] | undefined): readonly PromptPiece[] =>
    lists && admissible !== undefined ? (turn?.listed(admissible) ?? listActions(admissible)) : [];
  const parse: PromptStyle["parse"] = (response, tools) =>
    tools === undefined ? answers.parse(response) : parseCall(response, calls, tools);
  const format: PromptStyle["format"] = (action, thought) => {
    const written = formatAction(action, calls);
    return written === action ? answers.format(action, thought) : written;
  };
  const shown = (observation: string, origin: "observation" | "history"): readonly PromptPiece[] =>
    [
      { origin: "template" as const, text: before },
      { origin, text: observation },
      { origin: "template" as const, text: after },
    ].filter(({ text }) => text !== "");
  const opening = (view: PromptView): readonly PromptPiece[] =>
    template.first === undefined
      ? defaultOpening(view, shown, listed)
      : renderSection(template.first, view, slots);
  const system = (tools: readonly Tool[] | undefined): string => {
    if (template.system !== undefined) return sectionText(template.system);
    const { instructions = neutral.instructions } = prompt;
    return tools === undefined ? `${instructions} ${options.answer}` : instructions;
  };

  return {
    name: "chat",
    continuing: slots.history === "all" && !lists,
    responseEnd: "",
    around: [before, after],
    history: slots.history,
    callForm: calls,
    promptTokens,
    parse,
    format,
    continuation: (observation, _, tools) =>
      message(tools === undefined ? "user" : "tool", shown(observation, "observation")),
    render(view) {
      const { steps, tools } = view;
      const from = slots.history === "all" ? 0 : Math.max(0, steps.length - slots.history);
      const first = from === 0 ? view.firstObservation : steps[from - 1]!.observation;
      const pieces: PromptPiece[] = [];
      if (tools !== undefined) pieces.push(toolsPiece({ tools, how: howToCall(calls) }));
      pieces.push(...message("system", [{ origin: "system", text: system(tools) }]));
      const isFirst = from === steps.length;
      const start = {
        ...view,
        observation: isFirst ? view.observation : first,
        admissible: isFirst ? view.admissible : undefined,
      };
      pieces.push(...message("user", isFirst ? opening(start) : asHistory(opening(start))));
      for (let at = from; at < steps.length; at++) {
        const { action, observation, response = format(action) } = steps[at]!;
        const isCall = tools !== undefined && parse(response, tools).wellFormed;
        const call = isCall ? { call: callId(at) } : {};
        pieces.push({ origin: "history", text: response, role: "assistant", ...call });
        const isLast = at === steps.length - 1;
        const reply = [
          ...shown(observation, isLast ? "observation" : "history"),
          ...(isLast ? listed(view.admissible) : []),
        ];
        pieces.push(...message(tools === undefined ? "user" : "tool", reply, call));
      }
      return pieces;
    },
  };
}

function defaultOpening(
  view: PromptView,
  shown: (observation: string, origin: "observation") => readonly PromptPiece[],
  listed: (admissible: readonly string[] | undefined) => readonly PromptPiece[],
): readonly PromptPiece[] {
  const { pieces, say } = collector();
  say("task", view.goal);
  sayMemory(view, say);
  if (view.observation !== "" && view.observation !== view.goal) {
    say("template", "\n\n");
    // What a world shows at the start answers no action, so nothing stands around it.
    if (view.observation === view.firstObservation) say("observation", view.observation);
    else pieces.push(...shown(view.observation, "observation"));
  }
  pieces.push(...listed(view.admissible));
  return pieces;
}

function listActions(admissible: readonly string[]): readonly PromptPiece[] {
  return [
    { origin: "template", text: "\n\nActions you can take now:\n" },
    { origin: "actions", text: admissible.join("\n") },
  ];
}

/** The pieces as a message: its first piece names the role. */
function message(
  role: Role,
  pieces: readonly PromptPiece[],
  call: { readonly call?: string } = {},
): readonly PromptPiece[] {
  const [first = { origin: "template", text: "" } as const, ...rest] = pieces;
  return [{ ...first, role, ...call }, ...rest];
}

const asHistory = (pieces: readonly PromptPiece[]): readonly PromptPiece[] =>
  pieces.map((piece) => (piece.origin === "observation" ? { ...piece, origin: "history" } : piece));

function toolsPiece(tools: ToolsPiece): PromptPiece {
  return { origin: "tools", text: JSON.stringify(tools) };
}

/** The id of a step's call: nine letters and digits, which some chat templates insist on. */
function callId(step: number): string {
  return `call${String(step + 1).padStart(5, "0")}`;
}
