/** An RWML run from its configuration to its run folder: triplets, training, what was forgotten. */
import { join } from "node:path";
import type { Engine } from "../engine/engine.js";
import { openEnvironment } from "../envs/open.js";
import { mixSeed } from "../random.js";
import type { Group } from "../rollout/episode.js";
import { type Checkpoint, latestCheckpoint, saveCheckpoint } from "../runs/checkpoints.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { RunError } from "../runs/run-error.js";
import { createRun, finishFailed, type Run, resumeRun } from "../runs/run-folder.js";
import { worldQuestion } from "../rwml/question.js";
import { openReward, type StateReward } from "../rwml/reward.js";
import { loadTriplets, saveTriplets, type TripletData } from "../rwml/triplet-file.js";
import { historyLength, promptStyle } from "../text/prompt.js";
import { evaluateSplits } from "./evaluate.js";
import { openModel, resumedStart, savedStartOf } from "./open-model.js";
import { rwmlConfigOf } from "./recorded-config.js";
import { refuseShorter, resumeChanges, scheduleNotice } from "./resume.js";
import { expectedSteps, type FinishedRwmlUpdate, trainRwml } from "./rwml.js";
import type { RwmlConfig } from "./rwml-config.js";
import { prepareTriplets, type TripletSetup } from "./rwml-data.js";
import { reportForgetting, unmeasuredWeights } from "./rwml-forgetting.js";
import { heldOutMetrics, rwmlUpdateMetrics } from "./rwml-metrics.js";
import { REFERENCE, TOKENIZER } from "./saved-model.js";

/** Where to train, and who is told of it. */
export interface RwmlRunOptions {
  readonly folder: string;
  /** Go on with the run that is in the folder. */
  readonly resume?: boolean;
  /** How people gave a setting, for errors; default: its flag. */
  readonly placeOf?: ((path: readonly string[]) => string) | undefined;
  readonly signal?: AbortSignal;
  readonly onProblem?: (message: string) => void;
  readonly onPhase?: (phase: "reward" | "model" | "collect" | "filter" | "rwml") => void;
  readonly onMetrics?: (line: MetricsLine) => void;
  /** The reward to use instead of the one that is configured, for tests and one's own measures. */
  readonly reward?: StateReward;
}

/** Trains as configured and records everything to the run folder. */
export async function rwmlRun(config: RwmlConfig, options: RwmlRunOptions): Promise<void> {
  const { folder, signal, onProblem = ignore } = options;
  // What cannot work is refused before there is a run.
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  const checkpoint = options.resume === true ? latestCheckpoint(folder) : undefined;
  const start = checkpoint === undefined ? savedStartOf(config) : resumedStart(folder);
  options.onPhase?.("reward");
  const reward = options.reward ?? (await openReward(config.reward, onProblem));
  const run = openRunFolder(config, checkpoint, options);
  let engine: Engine | undefined;
  try {
    options.onPhase?.("model");
    const model = await openModel({
      start,
      engine: config.engine,
      servedFolder: join(folder, REFERENCE),
      seed: config.seed,
      needs: { entropies: config.objective.entropy > 0, temperatures: config.temperature !== 1 },
      onNotice: onProblem,
    });
    engine = model.engine;
    const style = promptStyle(environment.promptFamily, config.prompt);
    const history = historyLength(environment.promptFamily, config.prompt.history);
    const question = worldQuestion(model.tokenizer, style, history);
    if (checkpoint === undefined) {
      // A server's own model was saved for its tokenizer.
      if (!("served" in start)) await engine.save(join(folder, REFERENCE), { optimizer: false });
      await model.tokenizer.save(join(folder, TOKENIZER));
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
      ...(signal !== undefined && { signal }),
      ...(options.onPhase !== undefined && { onPhase: options.onPhase }),
    };
    const data = await tripletsFor(setup, config, run);
    const measure = (index: number) => measureAll(setup, data, config, index);
    if (checkpoint === undefined)
      report({ update: -1, ...countsOf(data), ...(await measure(-1)) }, run, options);
    options.onPhase?.("rwml");
    await engine.load(join(folder, REFERENCE));
    await engine.snapshotReference();
    if (checkpoint !== undefined) await engine.load(checkpoint.folder);
    await trainRwml(
      {
        ...setup,
        pool: data.train,
        firstUpdate: checkpoint?.state.updates ?? 0,
        optimizerSteps: checkpoint?.state.optimizerSteps ?? 0,
        onUpdate: (done) => finishUpdate(done, setup, measure, config, run, options),
      },
      config,
    );
    const summary = await reportForgetting(setup, data, config, folder, unmeasured);
    run.finish("done", { summary });
  } catch (error) {
    finishFailed(run, error, options);
    throw error;
  } finally {
    await engine?.dispose();
  }
}

const ignore = (): void => undefined;
const TRIPLETS = "triplets.jsonl.gz";

const groupsPerUpdate = ({ triplets, task }: RwmlConfig): number => triplets + task.groups;

function openRunFolder(
  config: RwmlConfig,
  checkpoint: Checkpoint | undefined,
  { folder, resume, placeOf, onProblem = ignore }: RwmlRunOptions,
): Run {
  if (resume !== true) {
    return createRun({ folder, kind: "rwml", seed: config.seed, config }, onProblem);
  }
  const { updates, optimizerSteps: step } = checkpoint?.state ?? { updates: 0, optimizerSteps: 0 };
  const recorded = rwmlConfigOf(folder);
  const resumption = { folder, length: "updates", placeOf };
  const changed = resumeChanges(recorded, config, resumption);
  refuseShorter(resumption, config.updates, updates);
  const lengthOf = (one: RwmlConfig) => ({
    length: one.updates,
    steps: expectedSteps(step, updates, one),
  });
  const schedule = { optimizer: config.optimizer, unit: "updates", step };
  const notice = scheduleNotice(schedule, lengthOf(recorded), lengthOf(config));
  if (notice !== undefined) onProblem(notice);
  return resumeRun(
    folder,
    {
      keep: {
        episode: (episode) => episode.group < updates * groupsPerUpdate(config),
        // The line before the first update is made again where there is no checkpoint.
        metrics: (line) => checkpoint !== undefined && line.update! < updates,
      },
      updates,
      config,
      changed,
    },
    onProblem,
  );
}

/** The run's triplets: those on disk, measured by the same reward, or new ones. */
async function tripletsFor(
  setup: TripletSetup,
  config: RwmlConfig,
  { folder }: Run,
): Promise<TripletData> {
  const path = join(folder, TRIPLETS);
  const known = loadTriplets(path);
  if (known === undefined) {
    const data = await prepareTriplets(setup, config);
    saveTriplets(path, data);
    return data;
  }
  if (known.reward !== setup.reward.name) {
    throw new RunError(
      `${folder} was begun with the reward of ${known.reward}, and now it is ${setup.reward.name}: numbers would not compare. Give it back its encoder or judge, or start a new run.`,
    );
  }
  return known;
}

const countsOf = ({ counts }: TripletData): MetricsLine =>
  Object.fromEntries(Object.entries(counts).map(([name, n]) => [`triplets.${name}`, n]));

async function measureAll(
  setup: TripletSetup,
  data: TripletData,
  config: RwmlConfig,
  index: number,
): Promise<MetricsLine> {
  const seed = mixSeed(config.seed, "evaluation", index);
  return {
    ...(await heldOutMetrics(setup, data.heldOut, config)),
    ...(await evaluateSplits(setup, config, seed, setup)),
  };
}

async function finishUpdate(
  done: FinishedRwmlUpdate,
  { engine, tokenizer }: TripletSetup,
  measure: (index: number) => Promise<MetricsLine>,
  config: RwmlConfig,
  run: Run,
  options: RwmlRunOptions,
): Promise<void> {
  const { index, optimizerSteps } = done;
  const first = index * groupsPerUpdate(config);
  const recorded = (groups: readonly Group[], offset: number) =>
    groups.flatMap(({ episodes }) =>
      episodes.map((episode) => ({ ...episode, group: offset + episode.group })),
    );
  run.recordEpisodes([
    ...recorded(done.predictions, first),
    ...recorded(done.tasks, first + config.triplets),
  ]);
  const last = index + 1 === config.updates;
  const { every } = config.evaluation;
  const due = every > 0 && ((index + 1) % every === 0 || last);
  report({ ...rwmlUpdateMetrics(done), ...(due ? await measure(index) : {}) }, run, options);
  if ((index + 1) % config.checkpointEvery === 0 || last) {
    await saveCheckpoint(run.folder, { updates: index + 1, optimizerSteps }, async (folder) => {
      await engine.save(folder);
      await tokenizer.save(folder);
    });
  }
}

function report(line: MetricsLine, run: Run, options: RwmlRunOptions): void {
  run.recordMetrics(line);
  options.onMetrics?.(line);
}
