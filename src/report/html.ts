/** HTML in which everything from elsewhere is escaped: a tagged template whose values are text. */

/** Markup that is safe to put into a page. */
export interface Html {
  readonly markup: string;
}

/** What a template accepts: markup, text, nothing, or a list of these. */
export type Content = Html | string | number | undefined | false | readonly Content[];

/**
 * Markup from a template; strings and numbers in it are escaped, for elements and for quoted
 * attributes.
 */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  return {
    markup: parts.reduce((all, part, i) => `${all}${render(values[i - 1])}${part}`),
  };
}

/** Trusted markup from elsewhere: our own style sheet and script. */
export function trusted(markup: string): Html {
  return { markup };
}

/** The text with HTML's special characters escaped. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function render(value: Content): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "string" || typeof value === "number") return escapeHtml(String(value));
  return "markup" in value ? value.markup : value.map(render).join("");
}
