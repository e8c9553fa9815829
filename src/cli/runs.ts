import { z } from "zod";
import { listRuns } from "../runs/run-list.js";
import { defineCommand, exitCodes } from "./command.js";
import { duration, percent, table } from "./format.js";
import { print, warn } from "./io.js";
import { factsOf, headlineText } from "./run-facts.js";

/** `pawl runs`: the runs in a folder. */
export const runs = defineCommand({
  name: "runs",
  summary: "list the runs",
  positionals: "[FOLDER]",
  details:
    "FOLDER holds the runs (default: runs). Success is that of the latest evaluation on its last split, with its 95 %\ninterval; best is that of the best evaluation.",
  plugins: "none",
  worlds: "none",
  options: () =>
    z.strictObject({
      json: z.boolean().default(false).describe("print the manifests as JSON, one per line"),
    }),
  examples: [
    ["pawl runs", "what was run when, how it ended and how well"],
    ["pawl runs experiments", "the runs below another folder"],
  ],
  async run({ config, positionals, io }) {
    const [folder = "runs"] = positionals;
    const found = listRuns(folder, (message) => warn(io, message));
    if (config.json) {
      for (const run of found) print(io, JSON.stringify({ folder: run.folder, ...run.manifest }));
      return exitCodes.done;
    }
    if (found.length === 0) {
      print(io, `No runs in ${folder}. pawl train --quick makes one in a minute and a half.`);
      return exitCodes.done;
    }
    const rows = found.map((run) => {
      const { manifest } = run;
      const { environment, model, updates, headline, best, seconds, ended } = factsOf(run);
      return [
        run.folder,
        manifest.kind,
        ended,
        manifest.createdAt.slice(0, 16).replace("T", " "),
        duration(seconds ?? Number.NaN),
        environment ?? "–",
        model ?? "–",
        updates === undefined ? "–" : `${updates.done}/${updates.all}`,
        headline === undefined ? "–" : headlineText(headline),
        percent(best?.success ?? Number.NaN),
      ];
    });
    const header = [
      ...["run", "kind", "ended", "started (UTC)", "took", "environment", "model"],
      ...["updates", "success", "best"],
    ];
    for (const line of table(header, rows)) print(io, line);
    return exitCodes.done;
  },
});
