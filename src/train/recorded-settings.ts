/** The settings of runs that were recorded before a setting changed, as they are given now. */
import { ConfigError } from "../config/config-error.js";
import type { TrainConfig } from "./config.js";
import { gradientOptions } from "./gradients.js";

/** Recorded settings with those of today in place of old ones. */
export function currentSettings(recorded: Readonly<Record<string, unknown>>): TrainConfig {
  const { gradientSample, ...rest } = recorded;
  const gradients = gradientOptions.parse(gradientSample === 0 ? { every: 0 } : {});
  // The rest is as it was recorded.
  return { gradients, ...rest } as unknown as TrainConfig;
}

/** The settings with which a recorded run goes on, and what to say of them where they are not those it began with. */
export function resumedSettings(recorded: Readonly<Record<string, unknown>>): {
  readonly config: TrainConfig;
  readonly notice?: string;
} {
  const config = currentSettings(recorded);
  if (!("gradientSample" in recorded)) return { config };
  if (config.paw.gradientCap !== undefined)
    throw new ConfigError(
      "paw.gradientCap: this run began when gradients were measured on a few sequences, and the cap would now be another one; begin a new run with gradients.every 1",
    );
  const { every } = config.gradients;
  if (every === 0) return { config };
  const notice = `gradients were measured on ${recorded.gradientSample} sequences of each update until now; from here on on the whole update, every ${every} updates`;
  return { config, notice };
}
