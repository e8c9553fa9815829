import { ConfigError } from "@pawl/core/config/config-error.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { correctionsNotice, olderNamesNotice } from "@pawl/training/recorded-config.js";
import { type Divergence, replayRun } from "@pawl/training/replay.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { print, warn } from "./io.js";

/** `pawl replay`: does the record explain the numbers? */
export const replay = defineCommand({
  name: "replay",
  summary: "recompute a run's numbers from its record and compare them",
  positionals: "RUN",
  details:
    "Compares, for every update: success, returns and counts, λ, selection, action entropy, tokens and the policy loss.\nUpdates whose starting weights are still in the folder are recomputed, so that every loss, KL and gradient norm is\ncompared too. Evaluations are not recorded, so not compared. Exit code 1: something differs.",
  options: () =>
    z.strictObject({
      losses: z
        .boolean()
        .default(true)
        .describe(
          "recompute losses of updates whose weights were kept; --no-losses uses only the record",
        ),
      tolerance: z
        .number()
        .min(0)
        .default(1e-3)
        .describe(
          "relative tolerance for numbers computed by an engine; all others must match to 1e-9",
        ),
      all: z.boolean().default(false).describe("list all divergences, not only the first"),
    }),
  examples: [
    ["pawl replay runs/…", "recompute everything the record determines"],
    ["pawl replay runs/… --no-losses", "without an engine: takes seconds for a long run"],
  ],
  async run({ config, positionals, io, signal }) {
    const [folder] = positionals;
    if (folder === undefined)
      throw new ConfigError(
        "pawl replay needs a run folder: pawl replay RUN. pawl runs lists them.",
      );
    const run = openRun(folder, (message) => warn(io, message));
    const older = olderNamesNotice(folder);
    if (older !== undefined) warn(io, older);
    const corrections = correctionsNotice(folder);
    if (corrections !== undefined) warn(io, `${corrections}. Its updates are not learnt again.`);
    const learnt: number[] = [];
    const left = { always: new Set<string>(), withoutWeights: new Set<string>() };
    let updates = 0;
    let compared = 0;
    let diverged = 0;
    for await (const replayed of replayRun(run, { ...config, signal })) {
      updates++;
      compared += replayed.compared.length;
      if (replayed.learnt) learnt.push(replayed.update);
      const missing = replayed.learnt ? left.always : left.withoutWeights;
      for (const name of replayed.left) missing.add(name);
      for (const divergence of replayed.divergences) {
        if (diverged++ === 0 || config.all) print(io, io.colors.red(describe(divergence)));
      }
    }
    print(io, `${updates} updates, ${compared} numbers compared, ${diverged} diverged`);
    if (learnt.length > 0) print(io, `recomputed: update ${learnt.join(", ")}`);
    const names = (set: ReadonlySet<string>): string => [...set].sort().join(", ");
    if (left.always.size > 0) print(io, `not compared: ${names(left.always)}`);
    if (left.withoutWeights.size > 0)
      print(io, `not compared where weights are gone: ${names(left.withoutWeights)}`);
    if (updates === 0) {
      warn(io, `${folder} has no update to replay yet`);
      return exitCodes.failed;
    }
    return diverged === 0 ? exitCodes.done : exitCodes.failed;
  },
});

function describe({ update, quantity, recorded, recomputed }: Divergence): string {
  if (quantity === "episodes") return `update ${update}: has numbers, but no recorded episodes`;
  return `update ${update}: ${quantity} was recorded as ${recorded}, but recomputed as ${recomputed}`;
}
