import { z } from "zod";
import { listRuns } from "../runs/run-folder.js";
import { defineCommand, exitCodes } from "./command.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";

/** `pawl runs`: the runs in a folder. */
export const runs = defineCommand({
  name: "runs",
  summary: "list the runs",
  plugins: "none",
  options: () =>
    z.strictObject({
      dir: z.string().default("runs").describe("folder that contains the run folders"),
      json: z.boolean().default(false).describe("print the manifests as JSON, one per line"),
    }),
  examples: [["pawl runs", "what was run when, how it ended and how well"]],
  async run({ config, io }) {
    const found = listRuns(config.dir, (message) => warn(io, message));
    if (config.json) {
      for (const { folder, manifest } of found) print(io, JSON.stringify({ folder, ...manifest }));
      return exitCodes.done;
    }
    if (found.length === 0) {
      print(io, `No runs in ${config.dir}. pawl rollout creates one.`);
      return exitCodes.done;
    }
    const rows = found.map(({ folder, manifest, active }) => [
      folder,
      manifest.kind,
      // A run marked as running that no process is writing to was killed.
      manifest.status === "running" && !active ? "killed" : manifest.status,
      manifest.createdAt.slice(0, 16).replace("T", " "),
      number(manifest.summary?.episodes ?? Number.NaN),
      percent(manifest.summary?.success ?? Number.NaN),
    ]);
    const header = ["run", "kind", "status", "started (UTC)", "episodes", "success"];
    for (const line of table(header, rows)) print(io, line);
    return exitCodes.done;
  },
});
