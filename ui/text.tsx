/**
 * Text of worlds and models, which is hostile: it is never markup, and characters that are invisible
 * or turn the direction of what follows are written out.
 */

import type { CutText } from "@pawl/ui/report/views.js";
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

/** Controls but line breaks and tabs, marks of direction, characters without width, tags, lone surrogates. */
const ODD =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: exactly these are to be seen
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** The text with such characters as visible marks. */
export function visible(text: string): ComponentChildren {
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(ODD)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    const code = `U+${match[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
    parts.push(
      <span class="odd" title="a character that cannot be seen">
        {code}
      </span>,
    );
    from = match.index + match[0].length;
  }
  if (from === 0) return text;
  parts.push(text.slice(from));
  return parts;
}

/** The name of a setting, which may go on in the next line after a dot. */
export const dotted = (path: string): ComponentChildren =>
  path.split(".").map((part, i) => (i === 0 ? visible(part) : [".", <wbr />, visible(part)]));

/** Marks as plain text, where elements cannot be: titles, options, cells of a chart. */
export const visibleText = (text: string): string =>
  text.replace(ODD, (odd) => `⟨U+${odd.codePointAt(0)!.toString(16).toUpperCase()}⟩`);

/** A text that may have been cut, with a button for more of it. */
export function Text(props: {
  readonly of: CutText;
  readonly class?: string;
  /** Loads what follows the given character. */
  readonly more?: ((from: number) => Promise<CutText>) | undefined;
}): JSX.Element {
  const { of, more } = props;
  const [added, setAdded] = useState("");
  const [problem, setProblem] = useState("");
  const shown = of.text + added;
  const rest = of.length - shown.length;
  const load = (): void => {
    more?.(shown.length).then(
      ({ text }) => setAdded(added + text),
      (error: Error) => setProblem(error.message),
    );
  };
  return (
    <div class={`text ${props.class ?? ""}`}>
      {visible(shown)}
      {rest > 0 && (
        <span class="cut">
          {" "}
          … {rest.toLocaleString("en")} more characters{" "}
          {more !== undefined && (
            <button type="button" class="small" onClick={load}>
              Show more
            </button>
          )}
          {problem !== "" && <span class="bad"> {problem}</span>}
        </span>
      )}
    </div>
  );
}

/** A command with a button that copies it. */
export function Copyable({
  text,
  label,
}: {
  readonly text: string;
  readonly label: string;
}): JSX.Element {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <span class="copyable">
      <code>{visible(text)}</code>
      <button type="button" class="small" onClick={copy} aria-label={`Copy: ${label}`}>
        {copied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
