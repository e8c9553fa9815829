import { ConfigError } from "@pawl/core/config/config-error.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { engineChoice } from "@pawl/training/engines.js";
import { dataOptions, maxTokensOption } from "@pawl/worldmodel/config.js";
import { readDataSets } from "@pawl/worldmodel/dataset.js";
import {
  type FidelityReport,
  type FidelityScore,
  fidelityReport,
  type Mistake,
  mistakesOf,
  scoreTurns,
} from "@pawl/worldmodel/fidelity.js";
import type { WorldModel } from "@pawl/worldmodel/model.js";
import { loadWorldModel } from "@pawl/worldmodel/saved.js";
import { createProblems, type Outcome } from "@pawl/worldmodel/trajectory.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { number, percent, table } from "./format.js";
import { print, warn } from "./io.js";
import { countProgress } from "./wm-progress.js";
import { finiteJson, writeResult } from "./wm-result.js";
import { chatWorld, chatWorldOptions, refuseIgnoredWorld } from "./wm-world.js";

const count = z.int().min(1);

/** `pawl wm eval fidelity`: compares a world model's answers with the world's. */
export const wmEvalFidelity = defineCommand({
  name: "wm eval fidelity",
  summary: "exact match and word F1 of a world model's answers, given the real history",
  details:
    "Scores overall and by environment, split, task type, policy and step. With --chat, asks a chat model instead, with\n--shots training trajectories in its prompt.",
  options: () =>
    z.strictObject({
      model: z
        .string()
        .optional()
        .describe("a run of pawl wm train or pawl train, or a model folder"),
      data: dataOptions,
      part: z
        .enum(["test", "train", "all"])
        .default("test")
        .describe("which trajectories to evaluate on"),
      trajectories: count
        .optional()
        .describe("random sample of this many trajectories (default: all)"),
      mistakes: z
        .int()
        .min(0)
        .default(0)
        .describe("number of wrong predictions to show next to the truth"),
      maxTokens: maxTokensOption,
      engine: engineChoice,
      ...chatWorldOptions,
      seed: z.int().min(0).default(0).describe("random seed for choosing trajectories"),
      out: z.string().optional().describe("write the scores to this JSON file"),
      json: z.boolean().default(false).describe("print the scores as one line of JSON"),
    }),
  examples: [
    ["pawl wm eval fidelity --model runs/… --data data/household", "on its test trajectories"],
    [
      "pawl wm eval fidelity --model runs/… --data data/unseen --part all --mistakes 10",
      "on other houses, with some of its mistakes",
    ],
    [
      "pawl wm eval fidelity --chat.base-url http://localhost:8000/v1 --chat.model NAME --data data/household",
      "few-shot prompting, the baseline",
    ],
  ],
  async run({ config, given, placeOf, io, signal }) {
    refuseIgnoredWorld(config, given, placeOf);
    const { model: folder, chat, seed, maxTokens, engine } = config;
    if ((folder === undefined) === (chat === undefined))
      throw new ConfigError("pawl wm eval fidelity: give either --model or --chat.…");
    const problems = createProblems((message) => warn(io, message));
    const data = readDataSets(config.data, problems);
    const all = { ...data, all: [...data.train, ...data.test] }[config.part];
    if (all.length === 0)
      throw new ConfigError(`--part: ${config.data.join(", ")} has no ${config.part} trajectories`);
    const order = createRandom(mixSeed(seed, "fidelity")).shuffle([...all]);
    const chosen = config.trajectories === undefined ? all : order.slice(0, config.trajectories);
    const loaded =
      folder === undefined ? undefined : await loadWorldModel(folder, { engine, maxTokens });
    try {
      const model: WorldModel = loaded?.model ?? chatWorld(config, data.train);
      const started = performance.now();
      const total = chosen.reduce((sum, one) => sum + one.turns.length, 0);
      const progress = countProgress(io, "turns", total);
      const turns = await scoreTurns(model, chosen, { signal, onTurns: progress.onCount }).finally(
        progress.end,
      );
      const report = fidelityReport(turns);
      const seconds = (performance.now() - started) / 1000;
      const result = {
        model: model.name,
        data: config.data,
        trajectories: chosen.length,
        seconds,
        leftOut: Object.fromEntries(problems.counts),
        ...report,
        ...(config.mistakes > 0 && { mistakes: mistakesOf(turns, config.mistakes) }),
      };
      writeResult(config.out, result);
      if (config.json) print(io, finiteJson(result));
      else {
        for (const line of fidelityTable(report)) print(io, line);
        for (const mistake of result.mistakes ?? []) print(io, describeMistake(mistake));
      }
    } finally {
      await loaded?.dispose();
    }
    return exitCodes.done;
  },
});

function describeMistake({ task, step, action, real, predicted }: Mistake): string {
  const line = ({ observation, success }: Outcome): string =>
    `${observation.trim() || "(nothing)"}${success ? "  (goal reached)" : ""}`;
  return [
    "",
    `${task}, step ${step}: ${action}`,
    `  world  ${line(real)}`,
    `  model  ${line(predicted)}`,
  ].join("\n");
}

function fidelityTable(report: FidelityReport): readonly string[] {
  const row = (name: string, score: FidelityScore): readonly string[] => [
    name,
    number(score.turns),
    percent(score.exactMatch),
    percent(score.f1),
    percent(score.successAccuracy),
    percent(score.successRecall ?? Number.NaN),
    number(Object.values(score.degenerate).reduce((sum, n) => sum + n, 0)),
  ];
  const section = (title: string, scores: Readonly<Record<string, FidelityScore>>) =>
    Object.entries(scores).map(([name, score]) => row(`${title} ${name}`, score));
  const header = [
    "turns",
    "number",
    "exact match",
    "word F1",
    "success right",
    "recall",
    "no answer",
  ];
  return table(header, [
    ...section("environment", report.byEnvironment),
    ...section("split", report.bySplit),
    ...section("type", report.byType),
    ...section("policy", report.byPolicy),
    ...section("step", report.byDepth),
    row("all", report.all),
  ]);
}
