/** Who may read: those who know the key in the address. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** A key that nobody guesses. */
export const randomKey = (): string => randomBytes(16).toString("base64url");

/** The path behind `/KEY/`, or undefined if the key is not there. */
export function pathBehindKey(path: string, key: string): string | undefined {
  const [, given = "", ...rest] = path.split("/");
  return timingSafeEqual(digest(given), digest(key)) && path.length > given.length + 1
    ? rest.join("/")
    : undefined;
}

/** Equal lengths, so that comparing takes the same time for every text. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Nothing but the page's own files; no frames, no forms, no other addresses. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};
