/**
 * Warm start: does it help an agent to have been a world model first?
 *
 *   warm  WM-SFT → Agent-SFT → RL
 *   cold           Agent-SFT → RL
 *
 * Both arms start from the same weights and the same tokenizer, and get the same training from
 * Agent-SFT on.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SettingsTree } from "@pawl/core/config/settings-tree.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { hasManifest, readManifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { hasCritic } from "@pawl/core/train/critic.js";
import type { TrainConfig } from "@pawl/training/config.js";
import { engineOptions } from "@pawl/training/engines.js";
import { openModel, startOf } from "@pawl/training/open-model.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { resumeChanges } from "@pawl/training/resume.js";
import { type TrainOptions, trainRun } from "@pawl/training/run.js";
import { textsForRun } from "@pawl/training/world-text.js";
import type { WorldTrainConfig } from "@pawl/worldmodel/config.js";
import { readDataSets } from "@pawl/worldmodel/dataset.js";
import { worldConfigOf } from "@pawl/worldmodel/saved.js";
import { MODEL, textsOf, trainWorldModel, type WorldTrainOptions } from "@pawl/worldmodel/train.js";
import { createProblems } from "@pawl/worldmodel/trajectory.js";

/** The two arms. */
export const arms = ["warm", "cold"] as const;
export type Arm = (typeof arms)[number];

/** What both arms do. */
export interface WarmStartConfig {
  readonly world: Omit<WorldTrainConfig, "model" | "engine" | "seed">;
  readonly train: TrainConfig;
  readonly seeds: readonly number[];
}

/** Where to work, and callbacks. */
export interface WarmStartOptions {
  readonly folder: string;
  /** Take runs even from processes that cannot be seen from here. */
  readonly forceUnlock?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onProblem?: (message: string) => void;
  /** Called when a stage starts; returns the callback for its progress. */
  readonly onStage?: (
    name: string,
  ) => Pick<WorldTrainOptions, "onPhase" | "onStep" | "onMetrics" | "onActivity"> &
    Pick<TrainOptions, "onPhase" | "onWarmStart" | "onMetrics" | "onActivity">;
}

/** The curve of one arm with one seed. */
export interface ArmCurve {
  readonly arm: Arm;
  readonly seed: number;
  readonly folder: string;
  /** The lines that have evaluations; update −1 is after Agent-SFT. */
  readonly evaluations: readonly MetricsLine[];
}

/** Each stage has settings of its own making; `bench/wm-warm-start.ts` checks those that were given. */
const none = (): boolean => false;

/** Runs both arms with every seed; finished stages are kept. */
export async function compareWarmStart(
  config: WarmStartConfig,
  options: WarmStartOptions,
): Promise<readonly ArmCurve[]> {
  const { signal, onProblem, onStage, forceUnlock } = options;
  const curves: ArmCurve[] = [];
  for (const seed of config.seeds) {
    const parent = join(options.folder, `seed-${seed}`);
    const start = await commonStart(join(parent, "start"), config, seed);
    const model = { ...config.train.model, start };
    const { engine } = config.train;
    const world = { ...config.world, model, engine, seed };
    const place = join(parent, "world");
    await stage(
      { folder: place, config: world, length: "epochs", recorded: worldConfigOf },
      (resume) =>
        trainWorldModel(world, {
          folder: place,
          resume,
          forceUnlock,
          given: none,
          signal,
          onProblem,
          ...onStage?.(`seed ${seed}: world model`),
        }),
    );
    const starts = { warm: join(parent, "world", MODEL), cold: start };
    for (const arm of arms) {
      const folder = join(parent, arm);
      const settings = { ...config.train, seed, model: { ...model, start: starts[arm] } };
      await stage(
        { folder, config: settings, length: "updates", recorded: trainConfigOf },
        (resume) =>
          trainRun(settings, {
            folder,
            resume,
            forceUnlock,
            given: none,
            signal,
            onProblem,
            ...onStage?.(`seed ${seed}: ${arm}`),
          }),
      );
      const lines = openRun(folder, onProblem ?? (() => undefined)).metrics();
      const evaluations = lines.filter((line) =>
        Object.keys(line).some((name) => name.startsWith("eval.")),
      );
      curves.push({ arm, seed, folder, evaluations });
    }
  }
  return curves;
}

/** Weights and tokenizer that both arms start from; a new tokenizer knows the words of both. */
async function commonStart(
  folder: string,
  { world, train }: WarmStartConfig,
  seed: number,
): Promise<string> {
  const start = await startOf(train);
  if ("folder" in start) return start.folder;
  if (existsSync(join(folder, "tokenizer.json"))) return folder;
  const environment = openEnvironment({ ...train.env, name: String(train.env.name) });
  const style = promptStyle(environment.prompt, train.prompt);
  const data = readDataSets(world.data, createProblems());
  const words = textsOf(data.train, world.protocol);
  const { engine, tokenizer } = await openModel({
    start,
    engine: engineOptions.parse({}),
    scratch: {
      maxContext: train.model.maxContext,
      tokenizer: async () =>
        buildTokenizer([...words, ...(await textsForRun(train, environment, style))], {
          chat: train.prompt.style === "chat",
        }),
    },
    seed,
    valueHead: hasCritic(train),
  });
  try {
    await engine.save(folder, { optimizer: false });
    // Written last: it marks the folder as complete.
    await tokenizer.save(folder);
  } finally {
    await engine.dispose();
  }
  return folder;
}

/** The mean success of an arm by split and update, over its seeds. */
export function meanCurve(
  curves: readonly ArmCurve[],
  arm: Arm,
): ReadonlyMap<string, ReadonlyMap<number, number>> {
  const sums = new Map<string, Map<number, { sum: number; count: number }>>();
  for (const { evaluations } of curves.filter((curve) => curve.arm === arm)) {
    for (const line of evaluations) {
      for (const [name, value] of Object.entries(line)) {
        const split = /^eval\.(\w+)\.success$/.exec(name)?.[1];
        if (split === undefined) continue;
        const byUpdate = sums.get(split) ?? new Map<number, { sum: number; count: number }>();
        const before = byUpdate.get(line.update!) ?? { sum: 0, count: 0 };
        byUpdate.set(line.update!, { sum: before.sum + value, count: before.count + 1 });
        sums.set(split, byUpdate);
      }
    }
  }
  return new Map(
    [...sums].map(([split, byUpdate]) => [
      split,
      new Map([...byUpdate].map(([update, { sum, count }]) => [update, sum / count])),
    ]),
  );
}

// Stages of a longer recipe, each a run folder: finished ones are kept, interrupted ones are
// resumed.

/** A stage: its folder, its settings, and how to read those it was recorded with. */
interface Stage {
  readonly folder: string;
  readonly config: SettingsTree;
  /** The setting for its length. */
  readonly length: "updates" | "epochs";
  recorded(folder: string): SettingsTree;
}

/**
 * Runs a stage unless its folder says that it is done, with these settings; returns whether it ran.
 */
export async function stage(
  { folder, config, length, recorded }: Stage,
  run: (resume: boolean) => Promise<void>,
): Promise<boolean> {
  const found = hasManifest(folder);
  if (found && readManifest(folder).status === "done") {
    // Other settings would have given other numbers than the kept ones.
    const changed = resumeChanges(recorded(folder), config, { folder, length });
    if (!(length in changed)) return false;
  }
  await run(found);
  return true;
}
