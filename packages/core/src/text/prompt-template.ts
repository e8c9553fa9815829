/**
 * Templates with named slots: anyone's own wording of a prompt, such as a paper's.
 *
 * A template is text with slots in braces, `Your task is to: {task_description}`, in sections that
 * begin with their name on a line of its own, `[system]`. A name in doubled braces is no slot:
 * `{{name}}` is written `{name}`; other braces stand for themselves.
 */
import { UserError } from "../errors.js";
import { readRegularText } from "../files/regular-file.js";
import { didYouMean } from "./nearest.js";
import {
  type PromptPiece,
  type PromptView,
  recentPairs,
  type SlotOptions,
} from "./prompt-style.js";

/** A problem with the settings or the template of a prompt, shown to the user as it is. */
export class PromptError extends UserError {
  override readonly name = "PromptError";
}

const viewSlots = [
  "task_description",
  "step_count",
  "history_length",
  "action_history",
  "memory_context",
  "current_step",
  "current_observation",
  "admissible_actions",
  "available_actions",
  "notes",
] as const;

/** The sections of a template, and the slots of each. */
const templateSections = {
  /** The system message. */
  system: [],
  /** The first message of a conversation. */
  first: [
    "task_description",
    "current_observation",
    "admissible_actions",
    "available_actions",
    "notes",
  ],
  /** A whole prompt of the full style. */
  step: viewSlots,
  /** One pair of `{action_history}`. */
  history: ["number", "observation", "action"],
  /** A later message of a conversation. */
  turn: ["current_observation", "admissible_actions", "available_actions"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

type SectionName = keyof typeof templateSections;

/** A part of a section: plain text, or a slot. */
type Part = { readonly text: string } | { readonly slot: string };

/** A template by its sections; those it does not have are undefined. */
export type PromptTemplate = Readonly<Partial<Record<SectionName, readonly Part[]>>>;

/** The setting `prompt.template` as text: a name of one line is a file to read. */
export function templateText(setting: string): string {
  if (setting.includes("\n")) return setting;
  try {
    // Ends with a line break, so that it is known as text when it is read back from a record.
    return readRegularText(setting).replace(/\s*$/, "\n");
  } catch (error) {
    throw new PromptError(
      `prompt.template: cannot read ${setting}: ${(error as Error).message}. Name a file with the wording of the prompt.`,
    );
  }
}

/** Reads a template; unknown sections and slots are refused by name. */
export function parseTemplate(text: string): PromptTemplate {
  const sections = new Map<SectionName, { readonly line: number; readonly lines: string[] }>();
  let current: string[] | undefined;
  text.split(/\r?\n/).forEach((line, at) => {
    const name = /^\[([a-z_]+)\]\s*$/.exec(line)?.[1];
    if (name === undefined) {
      if (current === undefined && line.trim() !== "") {
        current = [];
        sections.set("step", { line: at + 1, lines: current });
      }
      current?.push(line);
      return;
    }
    const known = Object.keys(templateSections);
    if (!known.includes(name))
      throw new PromptError(
        `prompt.template, line ${at + 1}: there is no section [${name}].${didYouMean(name, known)} Known: ${known.join(", ")}.`,
      );
    if (sections.has(name as SectionName))
      throw new PromptError(
        `prompt.template, line ${at + 1}: the section [${name}] is there twice`,
      );
    current = [];
    sections.set(name as SectionName, { line: at + 2, lines: current });
  });
  const template = Object.fromEntries(
    [...sections].map(([name, { line, lines }]) => [name, parseParts(lines, name, line)]),
  ) as PromptTemplate;
  checkTurn(template.turn);
  return template;
}

const slotPattern = /\{\{([a-z_]+)\}\}|\{([a-z_]+)\}/g;

function parseParts(lines: readonly string[], section: SectionName, line: number): readonly Part[] {
  const text = lines.join("\n").trim();
  const first = line + lines.findIndex((one) => one.trim() !== "");
  const slots: readonly string[] = templateSections[section];
  const parts: Part[] = [];
  let from = 0;
  const say = (part: string): void => {
    if (part !== "") parts.push({ text: part });
  };
  for (const match of text.matchAll(slotPattern)) {
    const [whole, literal, slot] = match;
    say(text.slice(from, match.index));
    from = match.index + whole.length;
    if (slot === undefined) say(`{${literal}}`);
    else if (slots.includes(slot)) parts.push({ slot });
    else
      throw new PromptError(
        `prompt.template, line ${first + text.slice(0, match.index).split("\n").length - 1}: there is no slot {${slot}} in [${section}].${didYouMean(slot, slots)} ${
          slots.length === 0 ? "It has no slots" : `Known: ${slots.join(", ")}`
        }; write {{${slot}}} if it is no slot.`,
      );
  }
  say(text.slice(from));
  return parts;
}

/** The observation of a turn is learnt, so it is there once; the actions are listed after it. */
function checkTurn(turn: readonly Part[] | undefined): void {
  if (turn === undefined) return;
  const slots = turn.flatMap((part) => ("slot" in part ? [part.slot] : []));
  if (slots[0] !== "current_observation" || slots.lastIndexOf("current_observation") > 0)
    throw new PromptError(
      `prompt.template: [turn] should have {current_observation} once, before any other slot; it has ${slots.map((slot) => `{${slot}}`).join(", ") || "no slot"}`,
    );
}

/** The text of a section without slots. */
export function sectionText(parts: readonly Part[] = []): string {
  return parts.map((part) => ("text" in part ? part.text : "")).join("");
}

/** What stands before and after the observation of a turn, and the pieces that list actions. */
export function turnParts(turn: readonly Part[]): {
  readonly around: readonly [string, string];
  readonly lists: boolean;
  listed(admissible: readonly string[]): readonly PromptPiece[];
} {
  const at = turn.findIndex((part) => "slot" in part);
  const rest = turn.slice(at + 1);
  const lists = rest.some((part) => "slot" in part);
  return {
    around: [sectionText(turn.slice(0, at)), lists ? "" : sectionText(rest)],
    lists,
    listed: (admissible) => fill(rest, () => [{ origin: "actions", text: admissible.join("\n") }]),
  };
}

/** A section filled with what a rollout knows. */
export function renderSection(
  parts: readonly Part[],
  view: PromptView,
  { history }: SlotOptions,
  pair?: readonly Part[],
): readonly PromptPiece[] {
  const pairs = recentPairs(view, history);
  const number = (value: number): readonly PromptPiece[] => [
    { origin: "template", text: String(value) },
  ];
  const actions = (): readonly PromptPiece[] => [
    { origin: "actions", text: (view.admissible ?? []).join("\n") },
  ];
  const values: Readonly<Record<string, () => readonly PromptPiece[]>> = {
    task_description: () => [{ origin: "task", text: view.goal }],
    step_count: () => number(view.index),
    history_length: () => number(pairs.length),
    current_step: () => number(view.index + 1),
    current_observation: () => [{ origin: "observation", text: view.observation }],
    admissible_actions: actions,
    available_actions: actions,
    notes: () => [{ origin: "memory", text: (view.memory ?? []).map((n) => `- ${n}`).join("\n") }],
    action_history: () =>
      pairs.flatMap(({ number: at, observation, action }) =>
        fill(pair ?? defaultPair, (slot) =>
          slot === "number"
            ? number(at)
            : [{ origin: "history", text: slot === "action" ? action : observation }],
        ),
      ),
    memory_context: () =>
      pairs.flatMap((_, at) => searchPair(view, view.steps.length - pairs.length + at)),
  };
  return fill(parts, (slot) => values[slot]!());
}

const defaultPair: readonly Part[] = [
  { text: "\nObservation " },
  { slot: "number" },
  { text: ": " },
  { slot: "observation" },
  { text: "\nAction " },
  { slot: "number" },
  { text: ": " },
  { slot: "action" },
];

/** A past step of a search, in the paper's tags. */
function searchPair({ steps }: PromptView, at: number): readonly PromptPiece[] {
  const { action, observation } = steps[at]!;
  const latest = at === steps.length - 1;
  return [
    { origin: "template", text: "\n" },
    { origin: "history", text: action },
    { origin: "template", text: "\n<information>" },
    { origin: latest ? "observation" : "history", text: observation },
    { origin: "template", text: "</information>" },
  ];
}

function fill(
  parts: readonly Part[],
  value: (slot: string) => readonly PromptPiece[],
): readonly PromptPiece[] {
  return parts
    .flatMap((part) =>
      "slot" in part ? value(part.slot) : [{ origin: "template" as const, text: part.text }],
    )
    .filter(({ text }) => text !== "");
}
