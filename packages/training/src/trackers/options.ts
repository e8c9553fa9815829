/** Where a run is tracked: the settings, and the trackers that they name. */

import { UserError } from "@pawl/core/errors.js";
import { addressOrFolder } from "@pawl/core/trust/reach.js";
import { z } from "zod";
import { mlflow } from "./mlflow.js";
import type { Tracker, TrackerKind } from "./tracker.js";
import { trackio } from "./trackio.js";

/** To add a tracker, write a file beside these and add a line here. */
const kinds: readonly TrackerKind[] = [trackio, mlflow];

const FORMS = kinds.map(({ name, where }) => `${name}=${where}`).join(", ");

/** A tracker as it was named, such as `trackio=http://127.0.0.1:7860`. */
export interface Target {
  readonly name: string;
  open(environment: Readonly<Record<string, string | undefined>>): Tracker;
}

/** Reads `KIND=WHERE`; throws if there is no such kind or the place makes no sense. */
export function parseTarget(text: string): Target {
  const equals = text.indexOf("=");
  const kind = kinds.find(({ name }) => name === text.slice(0, Math.max(equals, 0)));
  if (kind === undefined) throw new UserError(`expected ${FORMS}, got "${text}"`);
  const where = text.slice(equals + 1);
  // Opening makes no connection, but checks the place.
  kind.open(where, {});
  return { name: text, open: (environment) => kind.open(where, environment) };
}

const target = z.string().superRefine((text, context) => {
  try {
    parseTarget(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: (error as Error).message });
  }
});

/** One or several trackers. */
export const targetsOption = addressOrFolder(
  z.preprocess((given) => (typeof given === "string" ? [given] : given), z.array(target)),
  ...kinds.flatMap(({ keys }) => keys),
).describe(`trackers to send the run to: ${FORMS}`);

/** What is sent, and as part of which project. */
export const trackSettings = {
  project: z.string().min(1).default("pawl").describe("project or experiment of the trackers"),
  traces: z
    .int()
    .min(0)
    .default(2)
    .describe("episodes per update to send as conversations (0: none), where a tracker shows them"),
};

/** The settings of tracking. */
export const trackOptions = z
  .strictObject({ to: targetsOption.default([]), ...trackSettings })
  .prefault({});

export type TrackOptions = z.output<typeof trackOptions>;
