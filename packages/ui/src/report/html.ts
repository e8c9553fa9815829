/** Text inside markup that a program writes. */
import { plainText } from "@pawl/core/plain-text.js";

/** The text with HTML's special characters escaped, and control characters made visible. */
export function escapeHtml(text: string): string {
  return plainText(text).replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
