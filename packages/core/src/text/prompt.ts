/**
 * Prompts: what a policy reads before each decision, and the form its answer should have.
 *
 * A style renders what a rollout knows into pieces, each with its origin, so that every token can
 * later be traced to its author. `full` is prose with the slots of the paper's three templates
 * (task, step count, recent observation/action pairs, current step and observation, admissible
 * actions), for pretrained models; `chat` is a conversation in the model's own chat template;
 * `compact` is the slots alone after one-token markers, for small models.
 */
import { z } from "zod";
import { addedParts, addPart, schemaOfParts } from "../added-parts.js";
import { UserError } from "../errors.js";
import { chatStyle } from "./prompt-chat.js";
import { compactStyle } from "./prompt-compact.js";
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
import {
  PromptError,
  type PromptTemplate,
  parseTemplate,
  renderSection,
  sectionText,
  templateText,
} from "./prompt-template.js";
import { type AnswerForm, type Answers, answersOf } from "./response.js";
import type { Tokenizer } from "./tokenizer.js";
import { callForms, toolsText } from "./tool.js";
import { callFormOf } from "./tool-calls.js";

/** What the settings say about the slots of a prompt. */
interface StyleSlots {
  /** Past pairs of observation and action to show. */
  readonly history: number | "all";
  /** Whether to list the admissible actions. */
  readonly admissible: boolean;
}

/** A prompt style of one's own, for a plugin. */
export interface PromptStyleKind {
  readonly name: string;
  /** What help says about it. */
  readonly title: string;
  create(slots: StyleSlots): PromptStyle;
}

/** The styles of plugins by name. */
const pluginStyles = () => addedParts<PromptStyleKind>("promptStyles");

/** Adds a style to the list; `prompt.ts` offers it. */
function addPluginStyle(kind: PromptStyleKind, taken: readonly string[]): void {
  const { name, title, create } = kind ?? {};
  if (typeof name !== "string" || typeof title !== "string" || typeof create !== "function")
    throw new UserError("a prompt style consists of a name, a title and create(slots)");
  if (taken.includes(name))
    throw new UserError(
      `there is a prompt style "${name}" already; choose another name than ${taken.join(", ")}`,
    );
  addPart("promptStyles", name, kind);
}

const METHODS = ["render", "parse", "format", "continuation"] as const;

/** The style with this name, if a plugin has it. */
function pluginStyle(name: string, slots: StyleSlots): PromptStyle | undefined {
  const kind = pluginStyles().get(name);
  if (kind === undefined) return undefined;
  const style = kind.create(slots);
  const missing = METHODS.find((method) => typeof style?.[method] !== "function");
  if (missing !== undefined)
    throw new UserError(`prompt style "${name}": what create gave has no ${missing}()`);
  return style;
}

export type {
  EnvPrompt,
  PieceOrigin,
  PromptPiece,
  PromptStyle,
  PromptView,
} from "./prompt-style.js";
export { promptText } from "./prompt-style.js";

/** Settings of the prompts in our own styles: the source of types, defaults and help. */
const ownOptions = z.strictObject({
  style: z
    .enum(["full", "compact", "chat"])
    .default("full")
    .describe(
      "full: a prose prompt; chat: the episode as a conversation; compact: contents only, for small models",
    ),
  history: z
    .union([z.int().min(0), z.literal("all")])
    .optional()
    .describe("past observation/action pairs to show (default: 2; all for search and in chat)"),
  admissible: z
    .boolean()
    .optional()
    .describe("list the admissible actions (default: yes in the full style, no in the others)"),
  maxTokens: z
    .int()
    .min(1)
    .optional()
    .describe("chat: drop the oldest turns of a longer prompt, down to half of this"),
  template: z
    .string()
    .min(1)
    .overwrite(templateText)
    .optional()
    .describe("file with your own wording, with named slots (default: the environment's)"),
  answer: z
    .enum(["tags", "line"])
    .optional()
    .describe(
      "tags: <think> and <action>; line: the action alone, after a thought if any (default: tags in full, line in chat)",
    ),
  lowerCase: z
    .boolean()
    .optional()
    .describe(
      "put an action into lower case before the environment gets it; calls of tools are kept (default: no)",
    ),
  toolCalls: z
    .enum(callForms)
    .optional()
    .describe("chat: how tool calls are written (default: as in the model's chat template)"),
  observationEnd: z
    .boolean()
    .default(true)
    .describe(
      "learn the token that ends an observation with it (false: the observation's own tokens only, as PaW writes it)",
    ),
  tokens: z
    .enum(["whole", "pieces"])
    .default("whole")
    .describe("encode a prompt as a whole, or each piece by itself, as in older runs"),
});

/** Settings of the prompts, with the styles of plugins. */
export const promptOptions = schemaOfParts("promptStyles", () => {
  const { style } = ownOptions.shape;
  const added = [...pluginStyles().values()];
  if (added.length === 0) return ownOptions;
  return ownOptions.extend({
    style: z
      .enum([...style.unwrap().options, ...added.map(({ name }) => name)])
      .default("full")
      .describe(
        [style.description, ...added.map(({ name, title }) => `${name}: ${title}`)].join("; "),
      ),
  }) as unknown as typeof ownOptions;
});

/** Settings of the prompts, as a caller gives them. */
export type PromptOptions = z.input<typeof ownOptions>;

/** Adds a prompt style, so that `prompt.style` can name it. */
export function registerPromptStyle(kind: PromptStyleKind): void {
  addPluginStyle(kind, promptOptions().shape.style.unwrap().options);
}

/**
 * The style for an environment with these words. A tokenizer says how its model writes tool calls.
 */
export function promptStyle(
  prompt: EnvPrompt = {},
  options: PromptOptions = {},
  tokenizer?: Pick<Tokenizer, "chatTemplate">,
): PromptStyle {
  const settings = promptOptions().parse(options);
  refuseContradictions(settings);
  const { style, admissible } = settings;
  const slots: SlotOptions = {
    history: settings.history ?? (style === "chat" ? "all" : (prompt.history ?? 2)),
    admissible: admissible ?? style === "full",
  };
  const tokens = settings.tokens === "pieces" ? { tokens: settings.tokens } : {};
  const own = pluginStyle(style, slots);
  // Its methods may be those of a class.
  if (own !== undefined) return Object.assign(Object.create(own), tokens);
  return {
    ...builtIn(prompt, settings, slots, tokenizer),
    ...(settings.lowerCase === true && { lowerCase: true }),
    observationEnd: settings.observationEnd ? "learnt" : "read",
    ...tokens,
  };
}

function builtIn(
  prompt: EnvPrompt,
  settings: z.output<typeof ownOptions>,
  slots: SlotOptions,
  tokenizer: Pick<Tokenizer, "chatTemplate"> | undefined,
): PromptStyle {
  const { style } = settings;
  if (style === "compact") return compactStyle(prompt, slots);
  const written = settings.template ?? prompt.template;
  const template = written === undefined ? undefined : parseTemplate(written);
  const form: AnswerForm =
    (settings.answer ?? (style === "full" ? "tags" : "line")) === "tags" ? "tags" : "thought";
  const answers = answersOf(prompt, form);
  if (style === "chat") {
    return chatStyle(prompt, {
      slots,
      answers,
      answer: answerText(prompt, form),
      calls: settings.toolCalls ?? callFormOf(tokenizer?.chatTemplate),
      template,
      promptTokens: settings.maxTokens,
    });
  }
  return fullStyle(withTemplate(prompt, template), slots, answers);
}

/** How a conversation asks for answers. */
function answerText(
  { advice = neutral.advice, answer, actionTags }: EnvPrompt,
  form: AnswerForm,
): string {
  if (form !== "tags" || actionTags !== undefined) return answer ?? neutral.answer;
  return `${advice}, between <think> and </think>. Then write one action, and nothing else, between <action> and </action>.`;
}

/** The environment's words with the prompt of a template in place of its own. */
function withTemplate(prompt: EnvPrompt, template: PromptTemplate | undefined): EnvPrompt {
  if (template === undefined) return prompt;
  const { step, system, history } = template;
  if (step === undefined)
    throw new PromptError("prompt.template: the full style needs a section [step]; there is none");
  return {
    ...prompt,
    render(view, slots) {
      const pieces = renderSection(step, view, slots, history);
      if (system === undefined) return pieces;
      const [first, ...rest] = pieces;
      return [
        { origin: "system", text: sectionText(system), role: "system" },
        { ...first!, role: "user" },
        ...rest,
      ];
    },
  };
}

function refuseContradictions(settings: z.output<typeof ownOptions>): void {
  const refuse = (
    name: "maxTokens" | "template" | "answer" | "toolCalls" | "lowerCase" | "observationEnd",
    styles: string,
  ): void => {
    if (settings[name] !== undefined && !styles.includes(settings.style))
      throw new PromptError(
        `prompt.${name} has no meaning in the style ${settings.style}: leave it out, or set prompt.style to ${styles}`,
      );
  };
  refuse("maxTokens", "chat");
  refuse("toolCalls", "chat");
  refuse("template", "full or chat");
  refuse("answer", "full or chat");
  refuse("lowerCase", "full, compact or chat");
  if (!settings.observationEnd) refuse("observationEnd", "full, compact or chat");
  if (settings.maxTokens !== undefined && settings.history !== undefined)
    throw new PromptError(
      "prompt.maxTokens contradicts prompt.history: cut the history by turns or by tokens, not both",
    );
}

// The full style: prose with every slot on its own lines, answered in `<think>` and `<action>`. An
// environment gives its opening and advice, or renders all of it its own way.

/** Prose around the slots, for models that have been trained on prose. */
function fullStyle(prompt: EnvPrompt, slots: SlotOptions, answers: Answers): PromptStyle {
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
