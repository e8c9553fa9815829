/** Removed settings, with what replaced them, for callers that still give one. */
import { didYouMean } from "../text/nearest.js";

const REPLACED: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "engine.name": "It is now called engine.address, or --engine for short.",
    patience: "It is now called invalidActionLimit.",
    balance: "It is now called paw.lambda.",
    normaliser: "It is now called aggregation: token-mean (was tokens) or group-mean (was paper).",
    strays: "It is now called randomActions.",
    lanes: "It is now called concurrency.",
    gradientSample:
      "Gradients are now measured on whole updates: gradients.every sets how often (0: never).",
  }),
);

/**
 * The hint for an unknown setting or flag, with a leading space: its replacement, or the nearest
 * name.
 */
export function hintFor(name: string, known: Iterable<string>): string {
  const path = name.replace(/^--/, "").replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
  const replaced = REPLACED.get(path) ?? REPLACED.get(path.split(".").at(-1)!);
  return replaced === undefined ? didYouMean(name, known) : ` ${replaced}`;
}
