/**
 * An answer while it is sampled: what of its reasoning and text is certain, so that clients can be
 * told. What may still turn out to be something else is held back: the beginning of a tag or of a
 * stop text, half a character, white space at the end, and everything from the first call on. An
 * answer's calls are known when it is complete.
 */
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { CallForm } from "@pawl/core/text/tool.js";
import type { ChatAnswer, Heard } from "./chat.js";

/** What an answer in progress depends on. */
interface DraftForm {
  readonly tokenizer: Tokenizer;
  readonly form: CallForm;
  /** Whether tools were offered, so that text may be a call. */
  readonly tools: boolean;
  readonly stop: readonly string[];
  readonly prompt: readonly number[];
}

/** Tells a client of an answer, part by part. */
export interface AnswerDraft {
  /** Adds what was sampled. */
  add(tokens: readonly number[]): void;
  /** The whole answer: tells what was held back. */
  end(answer: ChatAnswer): void;
}

interface Parts {
  readonly reasoning: string;
  readonly text: string;
}

const OPEN = "<think>";
const CLOSE = "</think>";
const CALL = "<tool_call>";
/** The end of a prompt that may have opened a thought. */
const PROMPT_END = 16;

/** An answer of which nothing is known yet. */
export function answerDraft(
  { tokenizer, form, tools, stop, prompt }: DraftForm,
  hear: (heard: Heard) => void,
): AnswerDraft {
  const tokens: number[] = [];
  let told: Parts = { reasoning: "", text: "" };
  let began = false;
  const asked = tokenizer.decode(prompt.slice(-PROMPT_END));
  const isOpened = asked.lastIndexOf(OPEN) > asked.lastIndexOf(CLOSE);

  const begin = (): void => {
    if (!began) hear({ prompt });
    began = true;
  };
  const tell = (parts: Parts): void => {
    for (const part of ["reasoning", "text"] as const) {
      const more = parts[part].slice(told[part].length);
      if (more !== "") hear(part === "text" ? { text: more } : { reasoning: more });
    }
    told = {
      reasoning: longer(told.reasoning, parts.reasoning),
      text: longer(told.text, parts.text),
    };
  };

  const written = (): string => {
    const text = tokenizer.decode(tokens).replace(/\uFFFD+$/, "");
    const ends = stop.map((one) => text.indexOf(one)).filter((at) => at >= 0);
    return ends.length > 0 ? text.slice(0, Math.min(...ends)) : withoutBeginning(text, stop);
  };
  const textOf = (text: string): string => {
    if (!tools) return text;
    if (form !== "hermes") return /^\s*[{[`<]/.test(text) ? "" : text.trimEnd();
    const at = text.indexOf(CALL);
    return (at < 0 ? withoutBeginning(text, [CALL]) : text.slice(0, at)).trimEnd();
  };
  const certain = (): Parts => {
    const text = written();
    const close = text.indexOf(CLOSE);
    if (close >= 0)
      return {
        reasoning: text
          .slice(0, close)
          .replace(/^\s*<think>/, "")
          .trim(),
        text: textOf(text.slice(close + CLOSE.length).trimStart()),
      };
    const start = text.trimStart();
    if (start.startsWith(OPEN)) {
      const thought = withoutBeginning(start.slice(OPEN.length), [CLOSE]).trim();
      return { reasoning: thought, text: "" };
    }
    if (isOpened || OPEN.startsWith(start)) return { reasoning: "", text: "" };
    return { reasoning: "", text: textOf(withoutBeginning(text, [CLOSE])) };
  };

  return {
    add(more) {
      begin();
      tokens.push(...more);
      while (tokenizer.endIds.includes(tokens.at(-1)!)) tokens.pop();
      tell(certain());
    },
    end({ reasoning = "", text }) {
      begin();
      // With a call after it, a text loses the white space that it began with.
      const isTold = text.startsWith(told.text) || !text.startsWith(told.text.trimStart());
      tell({
        reasoning,
        text: isTold ? text : told.text + text.slice(told.text.trimStart().length),
      });
    },
  };
}

const longer = (a: string, b: string): string => (b.length > a.length ? b : a);

/** The text without the longest end that one of these could begin with. */
function withoutBeginning(text: string, marks: readonly string[]): string {
  let end = text.length;
  for (const mark of marks)
    for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
      if (text.endsWith(mark.slice(0, length))) {
        end = Math.min(end, text.length - length);
        break;
      }
  return text.slice(0, end);
}
