/** A training run from its configuration to its run folder: prepare, warm start, RL, evaluation. */
import { join } from "node:path";
import type { Engine } from "../engine/engine.js";
import type { Environment } from "../envs/env.js";
import { openEnvironment } from "../envs/open.js";
import { mixSeed } from "../random.js";
import type { Episode, Group } from "../rollout/episode.js";
import { type Checkpoint, latestCheckpoint, saveCheckpoint } from "../runs/checkpoints.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { createRun, finishFailed, type Run, resumeRun } from "../runs/run-folder.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { checkConfig } from "./checks.js";
import type { TrainConfig } from "./config.js";
import { type Critic, hasOwnCritic, openCritic } from "./critic.js";
import { type EvaluatedModel, evaluateSplits } from "./evaluate.js";
import type { GradientCap } from "./gradient-cap.js";
import { describeLeftOut } from "./left-out.js";
import { updateMetrics } from "./metrics.js";
import { type ModelStart, openModel, resumedStart, startOf } from "./open-model.js";
import { trainConfigOf } from "./recorded-config.js";
import { refuseShorter, resumeChanges, scheduleNotice } from "./resume.js";
import { expectedSteps, trainRl } from "./rl.js";
import type { FinishedUpdate } from "./rl-types.js";
import { REFERENCE, TOKENIZER } from "./saved-model.js";
import { type SftStep, sft } from "./sft.js";
import { teacherEpisodes } from "./teacher-episodes.js";
import { worldTexts } from "./world-text.js";

/** Where to train, and who is told of it. */
export interface TrainOptions {
  readonly folder: string;
  /** Go on with the run that is in the folder. */
  readonly resume?: boolean;
  /** How people gave a setting, for errors; default: its flag. */
  readonly placeOf?: ((path: readonly string[]) => string) | undefined;
  readonly signal?: AbortSignal;
  readonly onProblem?: (message: string) => void;
  readonly onPhase?: (phase: "tokenizer" | "model" | "warm start" | "rl") => void;
  readonly onWarmStart?: (step: SftStep) => void;
  readonly onMetrics?: (line: MetricsLine) => void;
}

/** What a run works with. */
interface Setup extends EvaluatedModel {
  readonly critic?: Critic;
}

/** Trains as configured and records everything to the run folder. */
export async function trainRun(config: TrainConfig, options: TrainOptions): Promise<void> {
  const { folder } = options;
  // What cannot work is refused before there is a run.
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  checkConfig(config, environment);
  const checkpoint = options.resume === true ? latestCheckpoint(folder) : undefined;
  const start = checkpoint === undefined ? startOf(config) : resumedStart(folder);
  const run =
    options.resume === true
      ? resumeFrom(folder, config, checkpoint, options)
      : startRun(config, options);
  let engine: Engine | undefined;
  let critic: Critic | undefined;
  try {
    const setup = await prepare(config, environment, start, checkpoint, options);
    engine = setup.engine;
    critic = setup.critic;
    if (checkpoint === undefined) await warmStart(setup, config, run, options);
    options.onPhase?.("rl");
    await engine.load(join(folder, REFERENCE));
    await (checkpoint === undefined
      ? critic?.start(join(folder, REFERENCE))
      : critic?.load(checkpoint.folder));
    // Nobody else asks for it, and it takes as much memory as the weights.
    if (config.objective.kl > 0) await engine.snapshotReference();
    if (checkpoint !== undefined) await engine.load(checkpoint.folder);
    await trainRl(
      {
        ...setup,
        firstUpdate: checkpoint?.state.updates ?? 0,
        optimizerSteps: checkpoint?.state.optimizerSteps ?? 0,
        gradientCap: capOf(checkpoint),
        ...(options.signal !== undefined && { signal: options.signal }),
        onEpisodes: async (groups, index) => recordEpisodes(groups, index, config, run, options),
        onUpdate: (done) => finishUpdate(done, setup, config, run, options),
      },
      config,
    );
  } catch (error) {
    finishFailed(run, error, options);
    throw error;
  } finally {
    await engine?.dispose();
    await critic?.dispose();
  }
  run.finish("done");
}

function capOf(checkpoint: Checkpoint | undefined): GradientCap {
  const { policyGradient } = checkpoint?.state ?? {};
  return policyGradient === undefined ? {} : { running: policyGradient };
}

function startRun(config: TrainConfig, { folder, onProblem = ignore }: TrainOptions): Run {
  return createRun({ folder, kind: "train", seed: config.seed, config }, onProblem);
}

function resumeFrom(
  folder: string,
  config: TrainConfig,
  checkpoint: Checkpoint | undefined,
  options: TrainOptions,
): Run {
  const { onProblem = ignore } = options;
  const { updates, optimizerSteps: step } = checkpoint?.state ?? { updates: 0, optimizerSteps: 0 };
  const recorded = trainConfigOf(folder);
  const resumption = { folder, length: "updates", placeOf: options.placeOf };
  const changed = resumeChanges(recorded, config, resumption);
  refuseShorter(resumption, config.updates, updates);
  const lengthOf = (one: TrainConfig) => ({
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
        episode: (episode) => episode.group < updates * config.groups,
        // The line of an evaluation before the first update belongs to the warm start.
        metrics: (line) => checkpoint !== undefined && line.update! < updates,
      },
      updates,
      config,
      changed,
    },
    onProblem,
  );
}

const ignore = (): void => undefined;

async function prepare(
  config: TrainConfig,
  environment: Environment,
  start: ModelStart,
  checkpoint: Checkpoint | undefined,
  options: TrainOptions,
): Promise<Setup> {
  const { folder } = options;
  const style = promptStyle(environment.promptFamily, config.prompt);
  const own = hasOwnCritic(config, checkpoint?.folder);
  const valueHead = config.advantage.name === "ppo" && !own;
  const { source, ...model } = await openModel({
    start,
    engine: config.engine,
    scratch: {
      maxContext: config.model.maxContext,
      tokenizer: async () => buildTokenizer(await worldTexts(environment, style)),
    },
    servedFolder: join(folder, REFERENCE),
    seed: config.seed,
    valueHead,
    needs: { ...needsOf(config), values: valueHead },
    onNotice: options.onProblem,
    onPhase: options.onPhase,
  });
  try {
    await model.tokenizer.save(join(folder, TOKENIZER));
    const critic = own
      ? await openCritic(config, source, environment.maxReturn, {
          seed: config.seed,
          ...(options.onProblem !== undefined && { onNotice: options.onProblem }),
        })
      : undefined;
    return { environment, style, ...model, ...(critic !== undefined && { critic }) };
  } catch (error) {
    await model.engine.dispose();
    throw error;
  }
}

function needsOf({ objective, paw, gradients, temperature }: TrainConfig) {
  return {
    entropies: objective.entropy > 0 || (paw.loss !== "off" && paw.entropy === "full"),
    discardGradients:
      paw.loss !== "off" && (gradients.every > 0 || paw.gradientLength !== undefined),
    temperatures: temperature !== 1,
  };
}

/** Imitates expert episodes, evaluates what came of it, and keeps it as the reference. */
async function warmStart(
  setup: Setup,
  config: TrainConfig,
  run: Run,
  options: TrainOptions,
): Promise<void> {
  const { engine } = setup;
  const { episodes, sft: sftOptions } = config.warmStart;
  options.onPhase?.("warm start");
  if (episodes > 0) {
    await sft(engine, await teacherEpisodes(setup, config, options), setup, {
      ...sftOptions,
      seed: config.seed,
      ...(options.onWarmStart !== undefined && { onStep: options.onWarmStart }),
      ...(options.signal !== undefined && { signal: options.signal }),
    });
  }
  // A server's own model was saved for its tokenizer, and is as it was.
  const isSaved = episodes === 0 && "served" in startOf(config);
  if (!isSaved) await engine.save(join(run.folder, REFERENCE), { optimizer: false });
  report({ update: -1, ...(await evaluateAll(setup, config, -1, options)) }, run, options);
}

function recordEpisodes(
  groups: readonly Group[],
  index: number,
  config: TrainConfig,
  run: Run,
  options: TrainOptions,
): void {
  const offset = index * config.groups;
  const episodes = groups.flatMap(({ episodes }): readonly Episode[] =>
    episodes.map((episode) => ({ ...episode, group: offset + episode.group })),
  );
  run.recordEpisodes(episodes);
  tellLeftOut(`update ${index + 1}`, episodes, options);
}

async function finishUpdate(
  done: FinishedUpdate,
  setup: Setup,
  config: TrainConfig,
  run: Run,
  options: TrainOptions,
): Promise<void> {
  const { index, optimizerSteps } = done;
  const last = index + 1 === config.updates;
  const { every } = config.evaluation;
  const due = every > 0 && ((index + 1) % every === 0 || last);
  const evaluation = due ? await evaluateAll(setup, config, index, options) : {};
  report({ ...updateMetrics(done), ...evaluation }, run, options);
  if ((index + 1) % config.checkpointEvery === 0 || last) {
    const { running } = done.gradientCap;
    const state = {
      updates: index + 1,
      optimizerSteps,
      ...(running !== undefined && { policyGradient: running }),
    };
    await saveCheckpoint(run.folder, state, async (folder) => {
      await setup.engine.save(folder);
      await setup.critic?.save(folder);
      await setup.tokenizer.save(folder);
    });
  }
}

function tellLeftOut(where: string, episodes: readonly Episode[], options: TrainOptions): void {
  const message = describeLeftOut(where, episodes);
  if (message !== undefined) options.onProblem?.(message);
}

function report(line: MetricsLine, run: Run, options: TrainOptions): void {
  run.recordMetrics(line);
  options.onMetrics?.(line);
}

function evaluateAll(
  setup: Setup,
  config: TrainConfig,
  index: number,
  options: TrainOptions,
): Promise<MetricsLine> {
  const { signal } = options;
  return evaluateSplits(setup, config, mixSeed(config.seed, "evaluation", index), {
    ...(signal !== undefined && { signal }),
    onSplit: (split, played) => tellLeftOut(`evaluation on ${split}`, played, options),
  });
}
