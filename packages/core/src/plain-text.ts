/**
 * Text of others (worlds, models, servers, files), made harmless: in a terminal it must not set
 * titles, fill the clipboard, move the cursor or hide text, and nowhere reverse its direction.
 */

/**
 * Control characters other than tab and line feed, and what reverses the direction of text. In
 * JSON such an escape stands for the same character.
 */
const CONTROLS = /(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** The text with control characters made visible; for what others wrote. */
export function plainText(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROLS, escaped);
}

const escaped = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A text as a part of an address; halves of characters, which have no place there, are replaced. */
export function urlPart(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}

/** An argument of a command that is shown to be copied, as a shell takes it. */
export function shellQuoted(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`;
}
