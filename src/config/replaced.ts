/** Settings that there are no more, for whoever still gives one: what to give in its place. */
import { didYouMean } from "../text/nearest.js";

const REPLACED: Readonly<Record<string, string>> = {
  gradientSample:
    "Gradients are measured on whole updates now: gradients.every says how often, and 0 is never.",
};

/** What to say of a setting or flag that nobody knows, with a leading space: what replaced it, or the nearest. */
export function hintFor(name: string, known: Iterable<string>): string {
  const last = name.replace(/^--/, "").split(".").at(-1)!;
  const setting = last.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const replaced = REPLACED[setting];
  return replaced === undefined ? didYouMean(name, known) : ` ${replaced}`;
}
