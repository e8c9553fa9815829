/** A training run from its configuration to its run folder: warm start, RL, evaluation. */

import { join } from "node:path";
import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { readAlarms } from "@pawl/core/runs/alarms-file.js";
import { lostFolders } from "@pawl/core/runs/check-run.js";
import type { Checkpoint } from "@pawl/core/runs/checkpoints.js";
import { requireSeals, sealFolder } from "@pawl/core/runs/checksums.js";
import { editedManifest } from "@pawl/core/runs/manifest.js";
import { type MetricsLine, readMetrics } from "@pawl/core/runs/metrics-file.js";
import { checkRecords } from "@pawl/core/runs/record-file.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { evaluationHeadline } from "@pawl/core/runs/run-list.js";
import { requireFree } from "@pawl/core/runs/run-lock.js";
import { episodesPath, metricsPath } from "@pawl/core/runs/small-file.js";
import { conversationNotice } from "@pawl/core/text/conversation.js";
import { observationEndNotice, responseEndId } from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { type Critic, hasCritic, hasOwnCritic } from "@pawl/core/train/critic.js";
import type { EvaluatedModel } from "@pawl/core/train/evaluate.js";
import { updateMetrics } from "@pawl/core/train/metrics.js";
import { groupsAhead, recordedUpdates } from "@pawl/core/train/recorded-updates.js";
import { expectedSteps, lengthNotice, trainRl } from "@pawl/core/train/rl.js";
import type { FinishedUpdate } from "@pawl/core/train/rl-types.js";
import { fitSamples, type SftStep, sft } from "@pawl/core/train/sft.js";
import { type GivenOptions, refuseIgnoredSettings } from "./applies.js";
import { checkConfig, contradictions } from "./checks.js";
import { type TrainConfig, trainConfig } from "./config.js";
import {
  checkpointRun,
  compareResumed,
  conductRun,
  drawnGroups,
  isDue,
  loadWeights,
  NOTHING_DONE,
  openTrainingRun,
  type RunConfig,
  type RunKind,
  type RunningRun,
  type RunOptions,
  resumedCheckpoint,
} from "./lifecycle.js";
import { openCritic } from "./open-critic.js";
import { checkTeacher, openTeacher, reopenTeacher } from "./open-distillation.js";
import {
  checkStart,
  type ModelStart,
  openModel,
  originOf,
  resumedStart,
  startOf,
} from "./open-model.js";
import {
  isTight,
  type RunPlan,
  requireMemory,
  scratchSizePlan,
  sizePlan,
  TIGHT,
  timePlan,
} from "./plan.js";
import { trainConfigOf } from "./recorded-config.js";
import { REFERENCE, TOKENIZER } from "./saved-model.js";
import { agentSamples, teacherEpisodes, transcriptSamples } from "./teacher-episodes.js";
import { textsForRun } from "./world-text.js";

// A resume on trial: refuses what the real one would refuse, and writes nothing.

const ignore = (): void => undefined;

/** Refuses a resume that would be refused, and writes nothing; for a dry run. */
function checkResume<C extends RunConfig>(
  kind: RunKind<C>,
  config: C,
  options: RunOptions,
): Checkpoint | undefined {
  const { folder, forceUnlock } = options;
  requireFree(folder, { force: forceUnlock });
  const edited = editedManifest(folder);
  if (edited !== undefined) throw new RunError(edited);
  const checkpoint = resumedCheckpoint(options);
  const state = checkpoint?.state ?? NOTHING_DONE;
  compareResumed(kind, config, state, options);
  const [lost] = lostFolders(openRun(folder, ignore));
  if (lost !== undefined) throw new RunError(`${join(folder, lost)} is missing: restore it`);
  if (checkpoint !== undefined)
    for (const name of [REFERENCE, TOKENIZER]) requireSeals(join(folder, name), "Restore it.");
  checkRecords(
    episodesPath(folder),
    (record) => (record as Pick<Episode, "group">).group < drawnGroups(kind, state),
  );
  readMetrics(metricsPath(folder), ignore);
  readAlarms(folder, ignore);
  return checkpoint;
}

/** Where to train, and callbacks. */
export interface TrainOptions extends RunOptions {
  readonly onPhase?: (phase: "tokenizer" | "model" | "measuring" | "warm start" | "rl") => void;
  readonly onWarmStart?: (step: SftStep) => void;
  /** Called with what is known of a new run: its sizes before anything is measured, its time after. */
  readonly onPlan?: (plan: RunPlan) => void;
}

/** What a run works with. */
interface Setup extends EvaluatedModel {
  readonly critic?: Critic;
  /** Whose opinion of the policy's tokens is learnt from. */
  readonly teacher?: Engine;
}

/** Trains as configured and records everything to the run folder. */
export async function trainRun(config: TrainConfig, options: TrainOptions): Promise<void> {
  const { folder, signal } = options;
  // Whatever cannot work is refused before the run starts.
  const environment = checkTraining(config, options);
  const checkpoint = resumedCheckpoint(options);
  const start =
    checkpoint === undefined
      ? await startOf(config, { onNotice: options.onProblem, signal: options.signal })
      : resumedStart(folder);
  const teacher = await checkTeacher(config, {
    ...(checkpoint && { run: folder }),
    ...(signal && { signal }),
  });
  const size = sizePlan(start, config, teacher);
  if (size !== undefined) requireMemory(size);
  if (checkpoint === undefined) await checkStart(start, config);
  const run = openTrainingRun(kindOf(config), config, checkpoint, options, originOf(start));
  const { groups: groupsPerUpdate, track } = config;
  const watched = { ...options, kind: "train", groupsPerUpdate, track, watch: config };
  await conductRun(run, watched, async (running) => {
    running.own({ dispose: async () => environment.close?.() });
    // Before anything is measured: what is too large may end there.
    if (checkpoint === undefined && size !== undefined) options.onPlan?.({ size });
    const setup = await openSetup(config, environment, start, checkpoint, running, options);
    if (options.onPlan !== undefined && checkpoint === undefined) {
      if (size === undefined)
        options.onPlan({
          size: scratchSizePlan(config, setup.tokenizer.vocabularySize, teacher),
        });
      if (size !== undefined && isTight(size)) options.onPlan({ time: { unknown: TIGHT } });
      else {
        options.onPhase?.("measuring");
        options.onPlan({ time: await timePlan(config, setup) });
      }
    }
    if (checkpoint === undefined) await warmStart(setup, start, config, running, options);
    options.onPhase?.("rl");
    // Only the KL penalty needs the reference.
    await loadWeights(setup.engine, folder, checkpoint, { reference: config.objective.kl > 0 });
    await (checkpoint === undefined
      ? setup.critic?.start(join(folder, REFERENCE))
      : setup.critic?.load(checkpoint.folder));
    await trainRl(
      {
        ...setup,
        firstUpdate: checkpoint?.state.updates ?? 0,
        optimizerSteps: checkpoint?.state.optimizerSteps ?? 0,
        ahead: checkpoint?.state.ahead && groupsAhead(folder, checkpoint, config.groups),
        recorded: checkpoint && recordedUpdates(folder, config.groups),
        ...(signal !== undefined && { signal }),
        onActivity: options.onActivity,
        onEpisodes: async (groups, index) =>
          running.recordEpisodes(`update ${index + 1}`, { groups, first: index * config.groups }),
        onUpdate: async (done) => {
          const notice = lengthNotice(done, config);
          if (notice !== undefined) options.onProblem?.(notice);
          await finishUpdate(done, setup, config, running);
        },
      },
      config,
    );
    return undefined;
  });
}

/** Opens the environment, and refuses a configuration that cannot work, or not as it was given. */
export function checkTraining(config: TrainConfig, how: GivenOptions = {}): Environment {
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  checkConfig(config, environment);
  refuseIgnoredSettings(trainConfig(findEnvKind(String(config.env.name))), config, how);
  return environment;
}

/** Refuses a resume that `trainRun` would refuse, without starting it. */
export function checkTrainResume(config: TrainConfig, options: TrainOptions): void {
  const checkpoint = checkResume(kindOf(config), config, options);
  if (checkpoint?.state.ahead) groupsAhead(options.folder, checkpoint, config.groups);
}

const kindOf = ({ groups }: TrainConfig): RunKind<TrainConfig> => ({
  kind: "train",
  recorded: trainConfigOf,
  length: "updates",
  lengthOf: ({ updates }) => updates,
  lengthDone: ({ updates }) => updates,
  stepsInAll: (config, { optimizerSteps, updates }) =>
    expectedSteps(optimizerSteps, updates, config),
  groupsPerUpdate: groups,
});

/** Opens the model, and a separate critic if there is one. */
async function openSetup(
  config: TrainConfig,
  environment: Environment,
  start: ModelStart,
  checkpoint: Checkpoint | undefined,
  { own, run }: RunningRun,
  options: TrainOptions,
): Promise<Setup> {
  const words = promptStyle(environment.prompt, config.prompt);
  const ownCritic = hasOwnCritic(config, checkpoint?.folder);
  const valueHead = hasCritic(config) && !ownCritic;
  const { source, engine, tokenizer } = await openModel({
    start,
    engine: config.engine,
    scratch: {
      maxContext: config.model.maxContext,
      tokenizer: async () =>
        buildTokenizer(await textsForRun(config, environment, words), {
          chat: config.prompt.style === "chat",
        }),
    },
    servedFolder: join(run.folder, REFERENCE),
    seed: config.seed,
    valueHead,
    needs: { ...needsOf(config), values: valueHead },
    onNotice: options.onProblem,
    onPhase: options.onPhase,
  });
  const style = promptStyle(environment.prompt, config.prompt, tokenizer);
  const notices = [
    ...contradictions(config, tokenizer),
    conversationNotice(tokenizer, style),
    learnsObservations(config) ? observationEndNotice(tokenizer, style) : undefined,
  ];
  for (const notice of notices) if (notice !== undefined) options.onProblem?.(notice);
  if (config.overlap > 0 && engine.capabilities.actor === "in turns")
    options.onProblem?.(
      `overlap: ${engine.capabilities.name} samples and learns in turns, so what is overlapped is the waiting for worlds and agents, not the computing`,
    );
  const policy = { environment, style, engine: own(engine), tokenizer };
  run.requireOwn();
  await tokenizer.save(join(run.folder, TOKENIZER));
  sealFolder(join(run.folder, TOKENIZER));
  const teacher = await (checkpoint === undefined ? openTeacher : reopenTeacher)(
    config,
    policy,
    run.folder,
  );
  const model = { ...policy, ...(teacher && { teacher: own(teacher) }) };
  if (!ownCritic) return model;
  const critic = await openCritic(config, source, environment.maxReturn, {
    seed: config.seed,
    ...(options.onProblem !== undefined && { onNotice: options.onProblem }),
  });
  return { ...model, critic: own(critic) };
}

const learnsObservations = ({ paw, warmStart }: TrainConfig): boolean =>
  paw.loss !== "off" || (warmStart.episodes > 0 && warmStart.sft.observationWeight > 0);

function needsOf(config: TrainConfig) {
  const { objective, paw, gradients, temperature, overlap } = config;
  return {
    entropies: objective.entropy > 0 || (paw.loss !== "off" && paw.entropy === "full"),
    discardGradients: paw.loss !== "off" && gradients.every > 0,
    temperatures: temperature !== 1,
    actor: overlap > 0,
    scoresBesideSampling: config.scoreWhileActing === true,
  };
}

/** Imitates expert episodes, evaluates the result, and keeps it as the reference. */
async function warmStart(
  setup: Setup,
  start: ModelStart,
  config: TrainConfig,
  running: RunningRun,
  options: TrainOptions,
): Promise<void> {
  const { engine } = setup;
  const { episodes, sft: sftOptions } = config.warmStart;
  options.onPhase?.("warm start");
  if (episodes > 0) {
    const fitting = {
      ...sftOptions,
      seed: config.seed,
      ...(options.onWarmStart !== undefined && { onStep: options.onWarmStart }),
      ...(options.signal !== undefined && { signal: options.signal }),
    };
    if (config.warmStart.data.length > 0)
      await fitSamples(engine, transcriptSamples(setup, config.warmStart, options), fitting);
    else {
      // A style that the tokenizer cannot write is refused before anything is played.
      responseEndId(setup.tokenizer, setup.style);
      const shown = await teacherEpisodes(setup, config, options);
      if (isAgentEnvironment(setup.environment))
        await fitSamples(engine, agentSamples(shown, setup, sftOptions), fitting);
      else await sft(engine, shown, setup, fitting);
    }
  }
  // A server's own model was already saved for its tokenizer, and has not changed.
  const isSaved = episodes === 0 && "served" in start;
  running.run.requireOwn();
  const reference = join(running.run.folder, REFERENCE);
  if (!isSaved) await engine.save(reference, { optimizer: false });
  sealFolder(reference);
  running.report({ update: -1, ...(await running.evaluate(setup, config, -1)) });
}

/**
 * What the best checkpoint is chosen by. An agent's run reports the last of its splits, so its best
 * checkpoint is chosen by the first, and by none if there is no other: the newest ones are kept.
 */
function successOf(
  evaluation: MetricsLine,
  { environment }: Pick<Setup, "environment">,
  { splits }: TrainConfig["evaluation"],
): { readonly success?: number } {
  if (isAgentEnvironment(environment)) {
    const success = splits.length > 1 ? evaluation[`eval.${splits[0]}.success`] : undefined;
    return success === undefined ? {} : { success };
  }
  const headline = evaluationHeadline(evaluation);
  return headline === undefined ? {} : { success: headline.success };
}

/**
 * Evaluates if that is due, reports the update's metrics, and saves a checkpoint if that is due.
 */
async function finishUpdate(
  done: FinishedUpdate,
  setup: Setup,
  config: TrainConfig,
  running: RunningRun,
): Promise<void> {
  const { index, optimizerSteps } = done;
  const updates = index + 1;
  const evaluation = isDue(config.evaluation.every, updates, config.updates)
    ? await running.evaluate(setup, config, index)
    : {};
  running.report({ ...updateMetrics(done), ...evaluation });
  if (isDue(config.checkpointEvery, updates, config.updates) || running.isStopping()) {
    const state = {
      updates,
      optimizerSteps,
      ...(done.isAhead && { ahead: true as const }),
      // What a server keeps is not ours to keep longer.
      ...((config.engine.address === "embedded" || config.engine.copy) &&
        successOf(evaluation, setup, config.evaluation)),
    };
    const parts = [setup.engine, setup.critic, setup.tokenizer];
    await checkpointRun(running.run, state, parts, config.keep);
  }
  running.stopIfAlarmed();
}
