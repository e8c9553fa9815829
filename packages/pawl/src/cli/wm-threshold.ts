import { ConfigError } from "@pawl/core/config/config-error.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { encoderOptions, openEncoder } from "@pawl/models/embeddings/open-encoder.js";
import { shortNumber, shortPercent } from "@pawl/ui/report/scale.js";
import { distancesOf, thresholdPage } from "@pawl/ui/report/threshold-page.js";
import { stateDistances } from "@pawl/worldmodel/rwml/reward.js";
import {
  type PairKind,
  proposeThresholds,
  statePairs,
  type ThresholdEffect,
} from "@pawl/worldmodel/rwml/threshold.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { print, warn } from "./io.js";

const count = z.int().min(1);

/** `pawl wm threshold`: which distance separates correct from wrong states in an environment. */
export const wmThreshold = defineCommand({
  name: "wm threshold",
  summary: "plot distances of correct and wrong states, and propose a threshold for RWML",
  details:
    "Encodes pairs of states of some episodes: the same with other spacing and case, paraphrases, one fact changed,\nanother action's result, and the state at another time.",
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      encoder: encoderOptions,
      split: z.string().default("train").describe("split to take tasks from"),
      tasks: count.default(40).describe("number of tasks to play"),
      steps: count.default(8).describe("maximum steps per task"),
      paraphrases: z
        .string()
        .optional()
        .describe("JSONL file of {state, paraphrase} to use instead of paraphrases by rule"),
      seed: z.int().min(0).default(0).describe("random seed"),
      out: z.string().default("threshold.html").describe("output file"),
      json: z.boolean().default(false).describe("print the result as one line of JSON"),
    }),
  examples: [
    ["pawl wm threshold", "the household world, with MiniLM"],
    ["pawl wm threshold --env alfworld --tasks 20", "another environment"],
    ["pawl wm threshold --encoder.from ./my-encoder", "an encoder in a folder"],
  ],
  async run({ config, io }) {
    const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
    const encoder = await openEncoder(config.encoder, (message) => warn(io, message));
    const { split, tasks, steps, seed, paraphrases } = config;
    const pairs = await statePairs(environment, {
      split,
      tasks,
      steps,
      seed,
      ...(paraphrases !== undefined && { paraphrases: readParaphrases(paraphrases) }),
    });
    const measured = await stateDistances(encoder, pairs);
    const labelled = pairs.map((pair, i) => ({ ...pair, distance: measured[i]! }));
    const { best, strict } = proposeThresholds(distancesOf(labelled));
    const { name, dimension } = encoder;
    writeSmallFile(
      config.out,
      thresholdPage({
        environment: environment.name,
        encoder: name,
        dimension,
        best,
        strict,
        pairs: labelled,
      }),
    );
    if (config.json) {
      const result = { environment: environment.name, encoder: name, dimension, best, strict };
      print(io, JSON.stringify({ ...result, pairs: pairs.length, file: config.out }));
    } else {
      for (const line of table({ proposed: best, strict })) print(io, line);
      print(io, `\n${pairs.length} pairs, encoded by ${name}; wrote ${config.out}`);
      print(io, `pawl rwml --reward.threshold ${shortNumber(best.threshold)}`);
    }
    return exitCodes.done;
  },
});

function table(effects: Readonly<Record<string, ThresholdEffect>>): readonly string[] {
  const kinds = Object.keys(Object.values(effects)[0]!.accepted) as PairKind[];
  const row = (cells: readonly string[]): string => cells.map((cell) => cell.padEnd(14)).join("");
  return [
    row(["", "threshold", ...kinds, "accuracy"]).trimEnd(),
    ...Object.entries(effects).map(([name, { threshold, accepted, accuracy }]) =>
      row([
        name,
        shortNumber(threshold),
        ...kinds.map((kind) => shortPercent(accepted[kind])),
        shortPercent(accuracy),
      ]).trimEnd(),
    ),
  ];
}

const paraphraseLine = z.object({ state: z.string().min(1), paraphrase: z.string().min(1) });

function readParaphrases(path: string): readonly z.output<typeof paraphraseLine>[] {
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    throw new ConfigError(`--paraphrases: ${(error as Error).message}`);
  }
  return text
    .split("\n")
    .flatMap((line, i) => (line.trim() === "" ? [] : [{ line, number: i + 1 }]))
    .map(({ line, number }) => {
      try {
        return paraphraseLine.parse(JSON.parse(line));
      } catch {
        throw new ConfigError(
          `${path}:${number}: expected {"state": TEXT, "paraphrase": TEXT}, got ${line.slice(0, 80)}`,
        );
      }
    });
}
