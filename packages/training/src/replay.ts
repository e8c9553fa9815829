/**
 * Replay: recomputes the numbers of every update from the recorded episodes and compares them.
 *
 * A second implementation (`recount.ts`, `recount-advantages.ts`) recomputes, for every update:
 * success, returns and counts, λ, selection, action entropies, the tokens learnt, the advantages,
 * and, if the update was one mini-batch, the policy loss, which at ratio 1 depends only on
 * advantages and weights. None of it runs the code that training ran.
 *
 * If the weights that an update started from are still there (the start of RL, or a checkpoint of
 * that very moment), the update is also learnt again from the recorded tokens, on a copy, so that
 * all losses, KL, probabilities and gradients are compared. The advantages are the recount's there
 * too, and the action entropy comes from a forward pass over the recorded tokens, not from what was
 * recorded while sampling. Some code is shared with training, because the alternative is a second
 * engine or optimiser: sequences and their weights (`update/`), objectives, mini-batches and the
 * engine; the teacher of corrections; the curriculum's estimates; and estimators that the recount
 * does not know.
 *
 * Not compared: evaluations, whose episodes are not recorded; times; memory; and gradients that
 * were measured on a sample, as in older runs. The advantages of a critic,
 * selection by full entropy, and actions whose log-probabilities at their temperature were not
 * recorded need the weights, so without weights everything that depends on them is left out too.
 */
import { join } from "node:path";
import {
  computeAdvantages,
  equalGroups,
  type TokenNumbers,
} from "@pawl/core/advantages/advantages.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { explainIo } from "@pawl/core/files/io-error.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { type Group, ownSteps } from "@pawl/core/rollout/episode.js";
import { checkpointAfter, latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import { brokenSeals } from "@pawl/core/runs/checksums.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import type { RecordedRun } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { drawnLogprobs } from "@pawl/core/text/sequence.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { type Critic, hasCritic, hasOwnCritic } from "@pawl/core/train/critic.js";
import { createCurriculum } from "@pawl/core/train/curriculum.js";
import { updateSeed } from "@pawl/core/train/draws.js";
import { measureGradients } from "@pawl/core/train/gradients.js";
import { createLearner } from "@pawl/core/train/learner.js";
import { updateMetrics } from "@pawl/core/train/metrics.js";
import { updatesOf } from "@pawl/core/train/recorded-updates.js";
import { referenceScores } from "@pawl/core/train/reference-scores.js";
import { expectedSteps } from "@pawl/core/train/rl.js";
import { mayBeStale } from "@pawl/core/train/staleness.js";
import { pawAt } from "@pawl/core/update/targets.js";
import { actionSequences, type Transition } from "@pawl/core/update/transitions.js";
import { contextOf } from "@pawl/models/weights/config-json.js";
import type { TrainConfig } from "./config.js";
import { openCritic } from "./open-critic.js";
import { reopenTeacher } from "./open-distillation.js";
import { openSavedModel } from "./open-model.js";
import { correctionsNotice, trainConfigOf, trainConfigsOf } from "./recorded-config.js";
import { recount, recountStaleness } from "./recount.js";
import { recountAdvantages } from "./recount-advantages.js";
import { findSavedModel, REFERENCE, TOKENIZER } from "./saved-model.js";

/** A number that differs from its record; undefined if it is missing. */
export interface Divergence {
  readonly update: number;
  readonly quantity: string;
  readonly recorded: number | undefined;
  readonly recomputed: number | undefined;
}

/** One recomputed update. */
export interface ReplayedUpdate {
  readonly update: number;
  /** The quantities that were compared. */
  readonly compared: readonly string[];
  /** Recorded, but not determined by the record. */
  readonly left: readonly string[];
  /** Whether the update was learnt again from its weights. */
  readonly learnt: boolean;
  readonly divergences: readonly Divergence[];
}

/** The recomputed numbers, and which of them an engine contributed to. */
interface Recomputed {
  readonly line: MetricsLine;
  readonly byEngine: (quantity: string) => boolean;
  readonly learnt: boolean;
}

/** Summing in another order changes the last digits; nothing else may differ. */
const EXACT = 1e-9;

/**
 * Whether a number belongs to the update, rather than being a time, a load, a memory size, an evaluation or an alarm.
 */
export const isComparable = (name: string): boolean =>
  !/^(seconds\.|pace\.|memory\.|eval\.|alarm\.|notFinite\.|update$)/.test(name);

/** The differences between the record and the recomputed numbers. */
function compare(
  recorded: MetricsLine,
  { line, byEngine, learnt }: Recomputed,
  { tolerance }: { readonly tolerance: number },
): ReplayedUpdate {
  const update = recorded.update!;
  const names = Object.keys(recorded).filter(isComparable);
  const compared = names.filter((name) => name in line);
  const divergences = compared
    .filter((name) => {
      const [a, b] = [recorded[name]!, line[name]!];
      const allowed = byEngine(name)
        ? tolerance * Math.max(Math.abs(a), 0.1)
        : EXACT * Math.max(Math.abs(a), 1);
      return !(Math.abs(a - b) <= allowed);
    })
    .map((name) => ({
      update,
      quantity: name,
      recorded: recorded[name],
      recomputed: line[name],
    }));
  const left = names.filter((name) => !(name in line));
  return { update, compared, left, learnt, divergences };
}

/** How to replay. */
export interface ReplayOptions {
  /** Learn updates again if their weights are still there. */
  readonly losses: boolean;
  /** Tolerance for what an engine computed, relative to max(|recorded|, 0.1). */
  readonly tolerance: number;
  readonly signal?: AbortSignal;
}

/** Replays a training run update by update, in one pass over its episodes. */
export async function* replayRun(
  run: RecordedRun,
  options: ReplayOptions,
): AsyncGenerator<ReplayedUpdate> {
  const configAt = trainConfigsOf(run.folder);
  const config = configAt(0);
  const lines = new Map(run.metrics().map((line) => [line.update, line]));
  const last = Math.max(-1, ...[...lines.keys()].map((update) => update ?? -1));
  // Before the first update is done there may be no weights either.
  if (last < 0) return;
  const learns = options.losses && correctionsNotice(run.folder) === undefined;
  const replayer = await createReplayer(run.folder, configAt, learns);
  let next = 0;
  try {
    for (const { update, groups } of updatesOf(run.episodes(), config.groups)) {
      options.signal?.throwIfAborted();
      for (; next < update; next++) if (lines.has(next)) yield withoutEpisodes(next);
      next = update + 1;
      const line = lines.get(update);
      // A run that was killed may have recorded the episodes of its last update but not its
      // metrics.
      if (line !== undefined) {
        yield compare(line, await replayer.recompute(update, groups), options);
      }
    }
    for (; next <= last; next++) yield withoutEpisodes(next);
  } finally {
    await replayer.close();
  }
}

function withoutEpisodes(update: number): ReplayedUpdate {
  const divergence = { update, quantity: "episodes", recorded: undefined, recomputed: undefined };
  return { update, compared: [], left: [], learnt: false, divergences: [divergence] };
}

/** The context of the model in a folder. */
function contextIn(folder: string): number {
  const file = join(folder, "config.json");
  const [broken] = brokenSeals(folder, "config.json");
  if (broken !== undefined) throw new RunError(`${broken}. Replay needs it: restore it.`);
  let config: unknown;
  try {
    config = JSON.parse(readRegularText(file));
  } catch (error) {
    throw new RunError(`${explainIo(error, file)}. Replay needs it: restore it.`, { cause: error });
  }
  return contextOf(config, file);
}

interface Replayer {
  recompute(update: number, groups: readonly Group[]): Promise<Recomputed>;
  close(): Promise<void>;
}

async function createReplayer(
  folder: string,
  configAt: (update: number) => TrainConfig,
  losses: boolean,
): Promise<Replayer> {
  // Settings that a resume may change are looked up by update; the rest never changed.
  const config = configAt(0);
  const usesSampler = (update: number): boolean => configAt(update).engine.sampler !== undefined;
  const environment = openEnvironment(
    { ...config.env, name: String(config.env.name) },
    { play: false },
  );
  const { maxReturn } = environment;
  const reference = join(folder, REFERENCE);
  const maxTokens = contextIn(reference);
  const valued = hasCritic(config);
  const own = hasOwnCritic(config, latestCheckpoint(folder)?.folder);
  let engine: Engine | undefined;
  let critic: Critic | undefined;
  let teacher: Engine | undefined;

  const curriculum = createCurriculum(environment, config);

  const full = config.paw.loss !== "off" && config.paw.entropy === "full";
  const advantagesOf = (groups: readonly Group[], values?: TokenNumbers) =>
    recountAdvantages(groups, config.advantage, values) ??
    computeAdvantages(groups, config.advantage, values);

  /** Without weights: only what the record determines. */
  const recounted = (index: number, groups: readonly Group[]): MetricsLine => {
    // The record does not say how the tokens of a sampler, or of older weights, were weighted.
    // Nor does it have a teacher's opinion.
    const isOwn =
      !usesSampler(index) &&
      !mayBeStale(configAt(index)) &&
      config.distillation.teacher === undefined;
    const atRatioOne = !valued && isOwn && hasSampledLogprobs(groups);
    const expected = curriculum.expected(groups);
    curriculum.see(index, groups);
    const counted = recount(groups, {
      config: { ...config, paw: pawAt(configAt(index).paw, index) },
      maxReturn,
      maxTokens,
      ownGroups: valued,
      advantages: atRatioOne ? advantagesOf(groups) : undefined,
    });
    return {
      ...counted,
      ...(expected !== undefined && { "curriculum.expected": expected }),
      ...(mayBeStale(configAt(index)) && { "train.staleness": recountStaleness(groups, index) }),
    };
  };

  /** With the engine at the weights before the update: everything. */
  const relearn = async (
    index: number,
    groups: readonly Group[],
    weights: string,
    stepsBefore: number,
  ): Promise<Recomputed> => {
    engine ??= await startEngine(folder, valued && !own);
    if (own) critic ??= await openCritic(config, { folder: reference }, maxReturn);
    await engine.load(weights);
    await (weights === reference ? critic?.start(reference) : critic?.load(weights));
    const sampler = usesSampler(index);
    const stale = mayBeStale(configAt(index));
    const tokenizer = await loadTokenizer(join(folder, TOKENIZER));
    teacher ??= await reopenTeacher(config, { engine, tokenizer }, folder);
    const context = {
      engine,
      critic,
      teacher,
      sampler,
      stale,
      environment,
      reference: referenceScores(engine, configAt(index)),
      tokenizer,
      style: promptStyle(environment.prompt, config.prompt, tokenizer),
    };
    // Updates that were learnt are learnt again, however large the mismatch was.
    const mismatchLimit = Number.POSITIVE_INFINITY;
    const learner = createLearner(context, { ...configAt(index), mismatchLimit });
    const scored = await learner.score(groups);
    const advantages = advantagesOf(groups, scored.valueTable);
    const prepared = learner.prepare(groups, advantages, scored, index);
    const terms = { critic: valued && !own, sampler: sampler || stale };
    const gradients = await measureGradients(engine, prepared, configAt(index), terms, index);
    // A separate sampler and 16 bits give other probabilities, and full entropies are the engine's
    // anyway.
    const isAsSampled = !sampler && !stale && engine.capabilities.sixteenBits !== true && !full;
    const passes = isAsSampled ? await engine.forward(actionSequences(prepared.transitions)) : [];
    const seed = updateSeed(config, index);
    const result = await learner.learn(prepared, {
      stepsBefore,
      stepsInAll: expectedSteps(stepsBefore, index, configAt(index)),
      seed,
      corrections: await learner.correct(groups, seed),
    });
    const { learnt } = result ?? {};
    const computed = { ...learnt?.metrics, ...result?.critic };
    const done = { index, groups, prepared, learnt, critic: result?.critic };
    const line = updateMetrics({
      ...{ equalGroups: equalGroups(advantages) },
      ...{ ...done, gradients, optimizerSteps: 0, isAhead: false },
      seconds: { rollout: 0, score: 0, prepare: 0, measure: 0, correct: 0, learn: 0 },
    });
    const entropy = entropyOf(prepared.transitions, passes);
    // The policy loss comes from the engine, which reports it for several mini-batches too.
    const { "policy.loss": _, ...counted } = recounted(index, groups);
    return {
      line: comparable({ ...line, ...counted, ...entropy }),
      byEngine: (name) =>
        (name in computed && name !== "learningRate") ||
        /^(policy\.actionEntropy|distillation\.kl|gradient\..*)$/.test(name),
      learnt: true,
    };
  };

  return {
    async recompute(index, groups) {
      const plainly = (): Recomputed => ({
        line: comparable(recounted(index, groups)),
        byEngine: (name) => name === "policy.loss",
        learnt: false,
      });
      if (!losses) return plainly();
      const checkpoint = checkpointAfter(folder, index);
      if (checkpoint === undefined && index > 0) return plainly();
      const steps = checkpoint?.state.optimizerSteps ?? 0;
      return relearn(index, groups, checkpoint?.folder ?? reference, steps);
    },
    async close() {
      await engine?.dispose();
      await critic?.dispose();
      await teacher?.dispose();
    },
  };
}

async function startEngine(folder: string, valueHead: boolean): Promise<Engine> {
  const saved = { ...findSavedModel(join(folder, REFERENCE)), config: trainConfigOf(folder) };
  const { engine } = await openSavedModel(saved, {}, { valueHead });
  await engine.snapshotReference();
  return engine;
}

/** The mean action entropy from a forward pass over the actions; empty if there was no pass. */
function entropyOf(
  transitions: readonly Transition[],
  passes: readonly { readonly logprobs: Float32Array }[],
): MetricsLine {
  if (passes.length === 0) return {};
  const entropies = transitions.map(({ actionStart, actionEnd }, i) => {
    const logprobs = passes[i]!.logprobs.subarray(actionStart, actionEnd);
    return logprobs.reduce((sum, l) => sum - Math.exp(l) * l, 0) / logprobs.length;
  });
  return { "policy.actionEntropy": entropies.reduce((sum, h) => sum + h, 0) / entropies.length };
}

/** Whether the log-probabilities that actions were sampled with were recorded. */
function hasSampledLogprobs(groups: readonly Group[]): boolean {
  return groups.every(({ episodes }) =>
    episodes
      .filter(({ stop }) => stop !== "broken")
      .flatMap(ownSteps)
      .every(({ sequence }) => drawnLogprobs(sequence!) !== undefined),
  );
}

const comparable = (line: MetricsLine): MetricsLine =>
  Object.fromEntries(Object.entries(line).filter(([name]) => isComparable(name)));
