import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { builtFile } from "@pawl/core/processes/calls.js";
import { hasManifest, readManifest } from "@pawl/core/runs/manifest.js";
import { packageFolder } from "@pawl/core/version.js";
import { runChild } from "@pawl/studies/child.js";
import { createPlay, type Lambda } from "@pawl/ui/server/play.js";
import { z } from "zod";
import { trial } from "../../../../recipes/trial.js";
import { defineCommand, exitCodes } from "./command.js";
import { print, warn } from "./io.js";
import { servePages } from "./ui.js";
import { DEFAULT_WORLD } from "./worlds.js";

/** The runs in the folder: the one that comes with the package, and the one that goes on from it. */
const TRIAL = { start: "start", trained: "trained" };

/** `pawl try`: an agent that acts, expects and learns in a page, from a start inside the package. */
export const tryOut = defineCommand({
  name: "try",
  summary: "watch an agent act, expect and learn, in a browser",
  positionals: "[FOLDER]",
  plugins: "none",
  details:
    "Copies a small agent (0.6 million parameters, 2 MB) to FOLDER (default: runs/try) and shows it in a page of this\nmachine: what it does, what it expects, and what comes. A button of the page trains it for about a minute on the\nprocessor, by recipes/trial.ts; what it learnt stays in FOLDER, and the next try goes on there.",
  options: () =>
    z.strictObject({
      port: z.int().min(0).max(65_535).default(0).describe("port to listen on (0: any free port)"),
    }),
  examples: [
    ["pawl try", "open the address that it prints"],
    ["pawl replay runs/try/trained", "afterwards: what was trained, computed again"],
  ],
  async run({ config, positionals, io, signal }) {
    const [folder = join("runs", "try")] = positionals;
    const [start, trained] = [join(folder, TRIAL.start), join(folder, TRIAL.trained)];
    const shipped = join(packageFolder(), "examples", "try-start");
    if (!existsSync(start)) {
      mkdirSync(folder, { recursive: true });
      cpSync(shipped, start, { recursive: true });
    } else if (!hasManifest(start))
      throw new ConfigError(
        `${start} is no run: expected the copy that an earlier pawl try made there; name another folder, or remove it`,
      );
    let running = Promise.resolve();
    let pause = new AbortController();
    const training = {
      train(lambda?: Lambda) {
        pause = new AbortController();
        const stop = AbortSignal.any([signal, pause.signal]);
        const child = { program: builtFile("main"), signal: stop };
        const ended = runChild(trainingArgs(start, trained, lambda), child).then(
          () => undefined,
          (error: Error) => {
            if (stop.aborted) return;
            warn(io, error.message);
            throw error;
          },
        );
        running = ended.catch(() => undefined);
        return ended;
      },
      pause: () => pause.abort(),
    };
    const play = createPlay({ root: folder, defaultWorld: DEFAULT_WORLD, training });
    await servePages(
      { folder, play, trial: TRIAL, host: "127.0.0.1", port: config.port, io, signal },
      (address) => print(io, `${address}#/try shows an agent at work; Ctrl-C stops it`),
    );
    await running;
    return exitCodes.done;
  },
});

/** The command that trains: from the start, or on from where the last training ended. */
function trainingArgs(start: string, trained: string, lambda?: Lambda): readonly string[] {
  const changed = lambda === undefined ? [] : ["--paw.lambda", String(lambda)];
  if (!hasManifest(trained))
    return [
      ...["train", "--recipe", "trial", "--model.start", start, "--out", trained, ...changed],
    ];
  const { updates } = readManifest(trained).config;
  const done = typeof updates === "number" ? updates : 0;
  const more = readManifest(trained).status === "done" ? trial.updates : 0;
  return ["train", "--resume", trained, "--updates", String(done + more), ...changed];
}
