/** Learning curves: the same world-model training over numbers of trajectories and model sizes. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomicallySync } from "@pawl/core/files/atomic-file.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { WorldTrainConfig } from "@pawl/worldmodel/config.js";
import { DataError, readDataSets } from "@pawl/worldmodel/dataset.js";
import { type FidelityReport, fidelityReport, scoreTurns } from "@pawl/worldmodel/fidelity.js";
import { loadWorldModel, worldConfigOf } from "@pawl/worldmodel/saved.js";
import { trainWorldModel, type WorldTrainOptions } from "@pawl/worldmodel/train.js";
import { createProblems } from "@pawl/worldmodel/trajectory.js";
import { stage } from "./world-first.js";

/** The grid, and where to write it. */
export interface ScaleOptions extends Omit<WorldTrainOptions, "resume"> {
  /** Maximum number of trajectories of each environment. */
  readonly sizes: readonly number[];
  /** Presets, or checkpoint folders. */
  readonly models: readonly string[];
  /** Test trajectories to score each model on. */
  readonly testTrajectories: number;
}

/** One trained model and its scores. */
export interface ScalePoint {
  readonly model: string;
  readonly parameters: number;
  /** Maximum number of trajectories of each environment that it learnt from. */
  readonly size: number;
  readonly fidelity: FidelityReport;
}

const SCORE = "fidelity.json";

/** Trains and scores every point of the grid; finished points are kept. */
export async function measureScaling(
  config: Omit<WorldTrainConfig, "budget">,
  options: ScaleOptions,
): Promise<readonly ScalePoint[]> {
  const { test, train } = readDataSets(config.data, createProblems(options.onProblem));
  if (test.length === 0) {
    throw new DataError(
      `${config.data.join(", ")} has no test trajectories to score models on: make them with pawl wm data --test 0.1`,
    );
  }
  const environments = [...new Set(train.map(({ env }) => env))];
  const chosen = createRandom(mixSeed(config.seed, "scale")).shuffle([...test]);
  const points: ScalePoint[] = [];
  for (const [index, start] of options.models.entries()) {
    for (const size of options.sizes) {
      const folder = join(options.folder, `model-${index}-${size}`);
      const settings = {
        ...config,
        model: { ...config.model, start },
        budget: environments.map((env) => `${env}=${size}`),
      };
      const ran = await stage(
        { folder, config: settings, length: "epochs", recorded: worldConfigOf },
        // A setting for all models need not concern each of them.
        (resume) => trainWorldModel(settings, { ...options, folder, resume, given: () => false }),
      );
      if (ran) rmSync(join(folder, SCORE), { force: true });
      const point = await scored(folder, { start, size }, () =>
        score(folder, chosen.slice(0, options.testTrajectories), settings, options.signal),
      );
      points.push(point);
    }
  }
  return points;
}

/** The score in the run's folder, computed if it is missing. */
async function scored(
  folder: string,
  { start, size }: { readonly start: string; readonly size: number },
  make: () => Promise<{ readonly parameters: number; readonly fidelity: FidelityReport }>,
): Promise<ScalePoint> {
  const path = join(folder, SCORE);
  if (existsSync(path)) return JSON.parse(readRegularText(path)) as ScalePoint;
  const point = { model: start, size, ...(await make()) };
  writeFileAtomicallySync(path, `${JSON.stringify(point, undefined, 2)}\n`);
  return point;
}

async function score(
  folder: string,
  test: Parameters<typeof scoreTurns>[1],
  { maxTokens }: WorldTrainConfig,
  signal: AbortSignal | undefined,
) {
  const world = await loadWorldModel(folder, { maxTokens });
  try {
    const fidelity = fidelityReport(await scoreTurns(world.model, test, { signal }));
    return { parameters: world.engine.capabilities.parameters, fidelity };
  } finally {
    await world.dispose();
  }
}
