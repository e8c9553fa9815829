/** Removed settings, with what replaced them, for callers that still give one. */
import { didYouMean } from "../text/nearest.js";

const REPLACED: Readonly<Record<string, string>> = {
  patience: "It is now called invalidActionLimit.",
  balance: "It is now called paw.lambda.",
  normaliser: "It is now called aggregation: token-mean (was tokens) or group-mean (was paper).",
  strays: "It is now called randomActions.",
  lanes: "It is now called concurrency.",
  gradientSample:
    "Gradients are now measured on whole updates: gradients.every sets how often (0: never).",
};

/**
 * The hint for an unknown setting or flag, with a leading space: its replacement, or the nearest
 * name.
 */
export function hintFor(name: string, known: Iterable<string>): string {
  const last = name.replace(/^--/, "").split(".").at(-1)!;
  const setting = last.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const replaced = REPLACED[setting];
  return replaced === undefined ? didYouMean(name, known) : ` ${replaced}`;
}
