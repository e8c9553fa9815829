import { join } from "node:path";
import { z } from "zod";
import { warmStart } from "../../recipes/warm-start.js";
import { findEnvKind } from "../envs/registry.js";
import { defaultRunFolder } from "../runs/run-folder.js";
import { refuseIgnoredSettings } from "../train/applies.js";
import { trainConfig } from "../train/config.js";
import { forceUnlockSetting } from "../train/resume.js";
import { worldTrainConfig } from "../worldmodel/config.js";
import {
  type Arm,
  type ArmCurve,
  arms,
  compareWarmStart,
  meanCurve,
} from "../worldmodel/warm-start.js";
import { defineCommand, exitCodes } from "./command.js";
import { recipeOf } from "./default-recipe.js";
import { envKindOf, envNameOf } from "./env-options.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";
import { trainProgress } from "./train-progress.js";
import { worldProgress } from "./wm-progress.js";
import { finiteJson, writeResult } from "./wm-result.js";
import { DEFAULT_WORLD } from "./worlds.js";

/** `pawl wm warm-start`: does it help an agent to have been a world model first? */
export const wmWarmStart = defineCommand({
  name: "wm warm-start",
  summary: "compare WM-SFT → Agent-SFT → RL with Agent-SFT → RL",
  details:
    "Both arms start from the same weights and tokenizer. Without --config, uses recipes/warm-start.ts, or the\nrecipe of --train.env. Repeated with the same --out, it keeps what is finished and continues with the rest.",
  base({ peek }) {
    const env = envNameOf(peek, "train.env.name");
    const path = "recipes/warm-start.ts";
    if (env === DEFAULT_WORLD) return { path, content: warmStart, file: "instead" };
    const { content, ...recipe } = recipeOf(env, (name) => peek(`train.${name}`));
    return { ...recipe, content: { ...warmStart, train: content } };
  },
  options: (peek) =>
    z.strictObject({
      world: worldTrainConfig.omit({ model: true, engine: true, seed: true }),
      train: trainConfig(envKindOf(peek, "train.env.name")).prefault({}),
      seeds: z
        .array(z.int().min(0))
        .min(1)
        .default([0, 1, 2])
        .describe("random seeds, both arms each"),
      out: z.string().optional().describe("folder for the runs (default: a new one in runs/)"),
      forceUnlock: forceUnlockSetting,
      json: z.boolean().default(false).describe("print the curves as one line of JSON"),
    }),
  examples: [
    ["pawl wm warm-start --world.data data/household", "three seeds in the household world"],
    [
      "pawl wm warm-start --world.data data/household --out runs/…",
      "resume an interrupted comparison",
    ],
  ],
  async run({ config, given, placeOf, io, signal }) {
    const { out, forceUnlock, json, ...settings } = config;
    const train = (path: string) => `train.${path}`;
    refuseIgnoredSettings(
      trainConfig(findEnvKind(String(settings.train.env.name))),
      settings.train,
      {
        given: (path, by) => given(train(path), by.map(train)),
        placeOf: (path) => placeOf(["train", ...path]),
      },
    );
    const folder = out ?? defaultRunFolder("wm-warm-start", "arms");
    let end: () => void = () => undefined;
    try {
      const curves = await compareWarmStart(settings, {
        folder,
        forceUnlock,
        signal,
        onProblem: (message) => warn(io, message),
        onStage(name) {
          end();
          const world = name.endsWith("world model");
          const progress = world
            ? worldProgress(io, name)
            : trainProgress(io, settings.train.updates);
          end = () => progress.end();
          return progress;
        },
      });
      end();
      end = () => undefined;
      const means = Object.fromEntries(
        arms.map((arm) => [
          arm,
          Object.fromEntries(
            [...meanCurve(curves, arm)].map(([split, curve]) => [split, Object.fromEntries(curve)]),
          ),
        ]),
      );
      writeResult(join(folder, "warm-start.json"), { means, curves });
      if (json) print(io, finiteJson({ folder, means }));
      else {
        for (const line of comparisonTable(curves)) print(io, line);
        print(io, `\nrecorded to ${folder}; to compare the curves:`);
        print(io, `  pawl report ${curves.map((curve) => curve.folder).join(" ")}`);
      }
    } catch (error) {
      end();
      if (signal.aborted) warn(io, `interrupted; the same command with --out ${folder} resumes it`);
      throw error;
    }
    return exitCodes.done;
  },
});

/** Success after Agent-SFT and after RL, of both arms. */
function comparisonTable(curves: readonly ArmCurve[]): readonly string[] {
  const rows = arms.flatMap((arm: Arm) =>
    [...meanCurve(curves, arm)].map(([split, curve]) => {
      const updates = [...curve.keys()].sort((a, b) => a - b);
      const best = Math.max(...curve.values());
      return [
        arm === "warm" ? "WM-SFT → Agent-SFT → RL" : "Agent-SFT → RL",
        split,
        number(curves.filter((one) => one.arm === arm).length),
        percent(curve.get(-1) ?? Number.NaN),
        percent(curve.get(updates.at(-1)!) ?? Number.NaN),
        percent(best),
      ];
    }),
  );
  return table(["arm", "split", "seeds", "after Agent-SFT", "after RL", "best"], rows);
}
