/** An RWML run from its configuration to its run folder: triplets, training, what was forgotten. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { checkStopOn } from "@pawl/core/alarms/alarms.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { sealFolder } from "@pawl/core/runs/checksums.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import type { Run } from "@pawl/core/runs/run-folder.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { refuseIgnoredSettings } from "@pawl/training/applies.js";
import { type EngineOptions, isRemote } from "@pawl/training/engines.js";
import {
  checkpointRun,
  conductRun,
  isDue,
  loadWeights,
  openTrainingRun,
  type RunKind,
  type RunningRun,
  type RunOptions,
  resumedCheckpoint,
} from "@pawl/training/lifecycle.js";
import { openModel, originOf, resumedStart, savedStartOf } from "@pawl/training/open-model.js";
import { REFERENCE, TOKENIZER } from "@pawl/training/saved-model.js";
import { type RwmlConfig, rwmlConditions, rwmlConfig, rwmlConfigOf } from "./config.js";
import { prepareTriplets, type TripletSetup } from "./data.js";
import { type WeightChange, weightChange } from "./forgetting.js";
import { type HeldOutSetup, heldOutMetrics, rwmlUpdateMetrics } from "./metrics.js";
import { worldQuestion } from "./question.js";
import { openReward, type StateReward } from "./reward.js";
import { asksOtherwise, loadTriplets, saveTriplets, type TripletData } from "./triplet.js";
import { expectedSteps, type FinishedRwmlUpdate, trainRwml } from "./updates.js";

// What RWML made the model forget: how far weights moved, and the loss on old actions and states
// now.

/** The content of `forgetting.json` in the run folder. */
interface ForgettingReport {
  /** |w − w₀| / |w₀| of all weights, and of each tensor; or why it could not be measured. */
  readonly weights: WeightChange | { readonly unmeasured: string };
  /** Held-out losses per token before and after. */
  readonly loss: Readonly<Record<string, { readonly before: number; readonly after: number }>>;
}

const FORGETTING = "forgetting.json";

/**
 * Why a run cannot say how far its weights moved; undefined if it can. Known once its start is
 * saved.
 */
function unmeasuredWeights(folder: string, engine: EngineOptions): string | undefined {
  if (engine.loraRank > 0)
    return `low-rank adapters are trained (engine.loraRank ${engine.loraRank}), and the weights beneath them stay as they are`;
  const kept = !isRemote(engine) || engine.copy;
  if (kept && hasWeights(join(folder, REFERENCE))) return undefined;
  return engine.copy
    ? "the start's weights are on an engine server that sends no files"
    : "the weights stay on the engine server; engine.copy brings them here";
}

const hasWeights = (folder: string): boolean => existsSync(join(folder, "model.safetensors"));

/**
 * Measures what was forgotten between the start and now, writes it to disk, and returns a summary.
 */
async function reportForgetting(
  setup: HeldOutSetup,
  data: TripletData,
  config: RwmlConfig,
  folder: string,
  unmeasured: string | undefined,
): Promise<MetricsLine> {
  const after = await heldOutMetrics(setup, data.heldOut, config);
  const reached = latestCheckpoint(folder)?.folder ?? join(folder, REFERENCE);
  const missing =
    unmeasured ?? (hasWeights(reached) ? undefined : `the weights of ${reached} are not here`);
  const weights =
    missing === undefined
      ? await weightChange(join(folder, REFERENCE), reached)
      : { unmeasured: missing };
  await setup.engine.load(join(folder, REFERENCE));
  const before = await heldOutMetrics(setup, data.heldOut, config);
  const loss = Object.fromEntries(
    Object.keys(after).flatMap((name) => {
      const kind = /^heldOut\.loss\.(.+)$/.exec(name)?.[1];
      return kind === undefined ? [] : [[kind, { before: before[name]!, after: after[name]! }]];
    }),
  );
  const content: ForgettingReport = { weights, loss };
  writeSmallFile(join(folder, FORGETTING), `${JSON.stringify(content, undefined, 2)}\n`);
  return {
    ...("all" in weights && { "weights.moved": weights.all }),
    ...Object.fromEntries(
      Object.entries(loss).map(([kind, { before: old, after: now }]) => [
        `heldOut.loss.${kind}.change`,
        now - old,
      ]),
    ),
    "heldOut.reward": after["heldOut.reward"]!,
    "heldOut.reward.before": before["heldOut.reward"]!,
  };
}

/** Where to train, and callbacks. */
export interface RwmlRunOptions extends RunOptions {
  readonly onPhase?: (
    phase: "reward" | "model" | "collect" | "filter" | "rwml" | "forgetting",
  ) => void;
  /** A reward to use instead of the configured one, for tests and custom measures. */
  readonly reward?: StateReward;
}

/** Trains as configured and records everything to the run folder. */
export async function rwmlRun(config: RwmlConfig, options: RwmlRunOptions): Promise<void> {
  const { folder, signal, onProblem = ignore } = options;
  // Whatever cannot work is refused before the run starts.
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  refuseIgnoredSettings(rwmlConfig(findEnvKind(String(config.env.name))), config, {
    conditions: rwmlConditions(),
    ...options,
  });
  checkStopOn(config, {
    ...(config.objective.entropy === 0 && { entropy: "it needs objective.entropy above 0" }),
    ...(config.objective.kl === 0 && { kl: "it needs objective.kl above 0" }),
  });
  const checkpoint = resumedCheckpoint(options);
  const start =
    checkpoint === undefined
      ? await savedStartOf(config, { onNotice: options.onProblem, signal: options.signal })
      : resumedStart(folder);
  options.onPhase?.("reward");
  const reward = options.reward ?? (await openReward(config.reward, onProblem));
  const run = openTrainingRun(kindOf(config), config, checkpoint, options, originOf(start));
  const { track } = config;
  const groups = { groupsPerUpdate: groupsPerUpdate(config) };
  const watched = { ...options, kind: "rwml", ...groups, track, watch: config };
  await conductRun(run, watched, async (running) => {
    options.onPhase?.("model");
    const model = await openModel({
      start,
      engine: config.engine,
      servedFolder: join(folder, REFERENCE),
      seed: config.seed,
      needs: { entropies: config.objective.entropy > 0, temperatures: config.temperature !== 1 },
      onNotice: onProblem,
    });
    const engine = running.own(model.engine);
    const style = promptStyle(environment.prompt, config.prompt, model.tokenizer);
    const question = worldQuestion(model.tokenizer, style);
    if (checkpoint === undefined) {
      run.requireOwn();
      // A server's own model was already saved for its tokenizer.
      if (!("served" in start)) await engine.save(join(folder, REFERENCE), { optimizer: false });
      await model.tokenizer.save(join(folder, TOKENIZER));
      for (const saved of [REFERENCE, TOKENIZER]) sealFolder(join(folder, saved));
    }
    const unmeasured = unmeasuredWeights(folder, config.engine);
    if (unmeasured !== undefined) onProblem(`weights.moved will not be measured: ${unmeasured}`);
    const setup = {
      ...model,
      environment,
      style,
      question,
      reward,
      start: resumedStart(folder),
      onProblem,
      signal,
      ...(options.onPhase !== undefined && { onPhase: options.onPhase }),
      onActivity: options.onActivity,
    };
    const data = await tripletsFor(setup, config, run);
    const measure = async (index: number) => ({
      ...(await heldOutMetrics(setup, data.heldOut, config)),
      ...(await running.evaluate(setup, config, index)),
    });
    if (checkpoint === undefined)
      running.report({ update: -1, ...countsOf(data), ...(await measure(-1)) });
    options.onPhase?.("rwml");
    await loadWeights(engine, folder, checkpoint, { reference: true });
    await trainRwml(
      {
        ...setup,
        pool: data.train,
        firstUpdate: checkpoint?.state.updates ?? 0,
        optimizerSteps: checkpoint?.state.optimizerSteps ?? 0,
        onUpdate: (done) => finishUpdate(done, setup, measure, config, running),
      },
      config,
    );
    options.onPhase?.("forgetting");
    run.requireOwn();
    return reportForgetting(setup, data, config, folder, unmeasured);
  });
}

const ignore = (): void => undefined;
const TRIPLETS = "triplets.jsonl.gz";

const groupsPerUpdate = ({ triplets, task }: RwmlConfig): number => triplets + task.groups;

const kindOf = (config: RwmlConfig): RunKind<RwmlConfig> => ({
  kind: "rwml",
  recorded: rwmlConfigOf,
  length: "updates",
  lengthOf: ({ updates }) => updates,
  lengthDone: ({ updates }) => updates,
  stepsInAll: (one, { optimizerSteps, updates }) => expectedSteps(optimizerSteps, updates, one),
  groupsPerUpdate: groupsPerUpdate(config),
});

/** The run's triplets: those on disk, measured by the same reward, or new ones. */
async function tripletsFor(
  setup: TripletSetup,
  config: RwmlConfig,
  run: Run,
): Promise<TripletData> {
  const { folder } = run;
  const path = join(folder, TRIPLETS);
  const known = loadTriplets(path);
  if (known === undefined) {
    const data = await prepareTriplets(setup, config);
    run.requireOwn();
    saveTriplets(path, data);
    return data;
  }
  if (known.reward !== setup.reward.name) {
    throw new RunError(
      `${folder} was started with the reward ${known.reward}, but now it is ${setup.reward.name}: the numbers would not be comparable. Use the same encoder or judge as before, or start a new run.`,
    );
  }
  if (asksOtherwise(known, setup.style))
    throw new RunError(
      `${folder} was started when questions of the style ${setup.style.name} left out the tools and what was written beside an action, so it would go on with other questions than it began with. Start a new run; --collect.runs takes the same episodes.`,
    );
  return known;
}

const countsOf = ({ counts }: TripletData): MetricsLine =>
  Object.fromEntries(Object.entries(counts).map(([name, n]) => [`triplets.${name}`, n]));

/** Records the update's groups, measures if that is due, and saves a checkpoint if that is due. */
async function finishUpdate(
  done: FinishedRwmlUpdate,
  { engine, tokenizer }: TripletSetup,
  measure: (index: number) => Promise<MetricsLine>,
  config: RwmlConfig,
  { run, report, recordEpisodes, isStopping, stopIfAlarmed }: RunningRun,
): Promise<void> {
  const { index, optimizerSteps } = done;
  const updates = index + 1;
  const first = index * groupsPerUpdate(config);
  recordEpisodes(
    `update ${updates}`,
    { groups: done.predictions, first },
    { groups: done.tasks, first: first + config.triplets },
  );
  const measured = isDue(config.evaluation.every, updates, config.updates)
    ? await measure(index)
    : {};
  report({ ...rwmlUpdateMetrics(done), ...measured });
  if (isDue(config.checkpointEvery, updates, config.updates) || isStopping())
    await checkpointRun(run, { updates, optimizerSteps }, [engine, tokenizer]);
  stopIfAlarmed();
}
