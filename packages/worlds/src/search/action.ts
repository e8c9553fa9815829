/** The actions: a search or the answer, each in its own tags. */

/** A search or an answer, with its text. */
export interface SearchAction {
  readonly kind: "search" | "answer";
  readonly text: string;
}

/**
 * Parses `<search>…</search>` or `<answer>…</answer>`; undefined for anything else and for empty
 * ones.
 */
export function parseAction(action: string): SearchAction | undefined {
  const trimmed = action.trim();
  for (const kind of ["search", "answer"] as const) {
    const open = `<${kind}>`;
    const close = `</${kind}>`;
    if (!trimmed.startsWith(open) || !trimmed.endsWith(close)) continue;
    const text = trimmed.slice(open.length, -close.length).trim();
    return text === "" || /<\/?(?:search|answer)>/.test(text) ? undefined : { kind, text };
  }
  return undefined;
}

/**
 * The action as a policy would write it. With the spaces, the words are the same tokens as in the
 * question and in the passages.
 */
export function writeAction({ kind, text }: SearchAction): string {
  return `<${kind}> ${text} </${kind}>`;
}
