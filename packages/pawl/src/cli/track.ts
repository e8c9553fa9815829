import { ConfigError } from "@pawl/core/config/config-error.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { leftOutNotice } from "@pawl/core/trust/secret-settings.js";
import { cursorName, openCursors, sendRest } from "@pawl/training/trackers/follow.js";
import { parseTarget, targetsOption, trackSettings } from "@pawl/training/trackers/options.js";
import { openSource } from "@pawl/training/trackers/source.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { print, warn } from "./io.js";

/** `pawl track`: sends a recorded run to trackers. */
export const track = defineCommand({
  name: "track",
  summary: "send a recorded run to a tracker: Trackio, MLflow",
  positionals: "RUN",
  plugins: "none",
  details:
    "Sends what the tracker does not have yet; pawl train --track does so while the run goes on. Tokens come from the\nenvironment: TRACKIO_WRITE_TOKEN (HF_TOKEN for a Space), MLFLOW_TRACKING_TOKEN.",
  options: () =>
    z.strictObject({
      to: targetsOption,
      ...trackSettings,
      again: z.boolean().default(false).describe("send everything, also what was sent before"),
    }),
  examples: [
    ["pawl track runs/… --to trackio=http://127.0.0.1:7860", "a server started by trackio show"],
    ["pawl track runs/… --to trackio=$HOME/.cache/huggingface/trackio", "Trackio's own folder"],
    ["pawl track runs/… --to mlflow=http://127.0.0.1:5000", "an MLflow server"],
  ],
  async run({ config, positionals, io, signal }) {
    const [folder] = positionals;
    if (folder === undefined)
      throw new ConfigError("pawl track needs a run folder: pawl track RUN --to trackio=URL");
    const { kind, config: recorded, status } = readManifest(folder);
    const leftOut = leftOutNotice(folder, recorded);
    if (leftOut !== undefined) warn(io, leftOut);
    const groupsPerUpdate = groupsOf(kind, recorded);
    const source = openSource(folder, config.project, { traces: config.traces, groupsPerUpdate });
    const cursors = openCursors(folder, source.run.id);
    for (const target of config.to.map(parseTarget)) {
      const tracker = target.open(io.env);
      if (config.again) cursors.forget(cursorName(target.name, source));
      const sent = await sendRest(source, tracker, target.name, cursors, signal);
      await tracker.finish?.(source.run, status, signal);
      print(io, `${target.name}: sent ${sent.lines} lines of metrics and ${sent.alarms} alarms`);
    }
    return exitCodes.done;
  },
});

/** Groups of episodes that an update of such a run records. */
function groupsOf(kind: string, config: Readonly<Record<string, unknown>>): number {
  const settings = config as { groups?: number; triplets?: number; task?: { groups?: number } };
  if (kind === "train") return settings.groups ?? 0;
  return kind === "rwml" ? (settings.triplets ?? 0) + (settings.task?.groups ?? 0) : 0;
}
