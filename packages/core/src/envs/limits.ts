/** Limits that hold in every environment: time, the length of observations, isolation. */
import { z } from "zod";

/** What an isolated world may take, if nothing else is said. */
export const ISOLATED_MEGABYTES = 2048;

/** Settings of the limits: types, defaults, help and errors come from here. */
export const limitOptions = z
  .strictObject({
    stepSeconds: z
      .number()
      .gt(0)
      .default(120)
      .describe("seconds that a world may take for one answer; then the episode is broken"),
    episodeSeconds: z
      .number()
      .gt(0)
      .default(1800)
      .describe("the same for all answers of an episode together, without the policy's time"),
    observation: z
      .int()
      .min(100)
      .default(100_000)
      .describe("longest goal or observation, in characters"),
    tooLong: z
      .enum(["cut", "break"])
      .default("cut")
      .describe("what happens to a longer one: it is cut, with a notice, or breaks the episode"),
    isolate: z
      .boolean()
      .default(false)
      .describe(
        "play each world in its own process, ended when it takes too long or too much memory",
      ),
    isolatedMemory: z
      .int()
      .min(100)
      .optional()
      .describe(
        `megabytes that an isolated world's process may take; then the episode is broken (default: ${ISOLATED_MEGABYTES})`,
      ),
  })
  .prefault({});

/** The limits of an environment. */
export type EnvLimits = z.output<typeof limitOptions>;

/** Those of an environment that says nothing. */
export const DEFAULT_LIMITS: EnvLimits = limitOptions.parse(undefined);

/** For worlds whose answers are computed here, such as a world model's: they take what they take. */
export const NO_TIME_LIMITS: EnvLimits = {
  ...DEFAULT_LIMITS,
  stepSeconds: Number.POSITIVE_INFINITY,
  episodeSeconds: Number.POSITIVE_INFINITY,
};
