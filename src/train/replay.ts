/**
 * Replay: the numbers of every update, computed again from the recorded episodes and compared.
 *
 * What needs no weights is computed again for every update and must come out the same: success, returns
 * and counts, λ, selection, action entropies, the tokens learnt, and, where the update was learnt in one
 * mini-batch, the policy loss, which at ratio 1 depends on nothing but advantages and weights.
 *
 * Where the weights an update started from are still there (the start of RL, and a checkpoint of that very
 * moment), the update is learnt again from the recorded tokens, on a copy, so that all losses, KL,
 * probabilities and gradient norms are compared as well.
 *
 * Not compared: evaluations, of which the episodes are not recorded, times, memory, and the gradients that
 * are measured on a sample; a cap on λ is computed again from the recorded ones, and a scale to another loss's
 * length is taken as recorded. PPO's advantages and selection by full entropy need the weights, so without them what
 * depends on those is left out too.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Advantages, computeAdvantages } from "../advantages/advantages.js";
import type { Engine, TrainSequence } from "../engine/engine.js";
import { parseModelConfig } from "../engine/weights/model-config.js";
import { openEnvironment } from "../envs/open.js";
import { evaluateObjective } from "../objectives/expression-evaluate.js";
import { updateObjective } from "../objectives/objective.js";
import type { Episode, Group } from "../rollout/episode.js";
import { checkpointAfter } from "../runs/checkpoints.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { RecordedRun } from "../runs/run-folder.js";
import { prepareUpdate, scaleWorld, type Update } from "../update/update.js";
import type { TrainConfig } from "./config.js";
import { openEngine, withoutSampler } from "./engines.js";
import { type GradientCap, nextGradientCap } from "./gradient-cap.js";
import { type Learnt, learn, minibatches } from "./learn.js";
import { updateMetrics } from "./metrics.js";
import { expectedSteps, updateSeed } from "./rl.js";
import { REFERENCE, trainConfigOf } from "./saved-model.js";
import { scoreActions } from "./score.js";

/** A number that did not come out as it was recorded; undefined where there is none. */
export interface Divergence {
  readonly update: number;
  readonly quantity: string;
  readonly recorded: number | undefined;
  readonly recomputed: number | undefined;
}

/** One update, computed again. */
export interface ReplayedUpdate {
  readonly update: number;
  /** The quantities that were compared. */
  readonly compared: readonly string[];
  /** Recorded, but not to be had from the record. */
  readonly left: readonly string[];
  /** Whether the update was learnt again from its weights. */
  readonly learnt: boolean;
  readonly divergences: readonly Divergence[];
}

/** How to replay. */
export interface ReplayOptions {
  /** Learn updates again where their weights are still there. */
  readonly losses: boolean;
  /** How far what an engine computed may be off, relative to its size, or to 1 where it is smaller than 0.1. */
  readonly tolerance: number;
  readonly signal?: AbortSignal;
}

/** Sums in another order differ in the last digits; nothing else may. */
const EXACT = 1e-9;

/** Replays a training run update by update, in one pass over its episodes. */
export async function* replayRun(
  run: RecordedRun,
  options: ReplayOptions,
): AsyncGenerator<ReplayedUpdate> {
  const config = trainConfigOf(run.folder);
  const lines = new Map(run.metrics().map((line) => [line.update, line]));
  const last = Math.max(-1, ...[...lines.keys()].map((update) => update ?? -1));
  // Before the first update is done there may be no weights either.
  if (last < 0) return;
  const replayer = await createReplayer(run.folder, config, options.losses, capsOf(lines, config));
  let next = 0;
  try {
    for (const { update, groups } of updatesOf(run.episodes(), config.groups)) {
      options.signal?.throwIfAborted();
      for (; next < update; next++) if (lines.has(next)) yield withoutEpisodes(next);
      next = update + 1;
      const line = lines.get(update);
      // A run that was killed may have recorded the episodes of its last update and not its numbers.
      if (line !== undefined) {
        yield compare(line, await replayer.recompute(update, groups), options);
      }
    }
    for (; next <= last; next++) yield withoutEpisodes(next);
  } finally {
    await replayer.close();
  }
}

/** Where the cap on the world model's gradient stood at each update. */
function capsOf(
  lines: ReadonlyMap<number | undefined, MetricsLine>,
  { paw: { gradientCap, gradientLength }, updates }: TrainConfig,
): ReadonlyMap<number, GradientCap> {
  const caps = new Map<number, GradientCap>();
  let cap: GradientCap = {};
  for (let update = 0; update < updates && lines.has(update); update++) {
    const line = lines.get(update)!;
    // The scale to another loss's length needs the weights of that moment, so the recorded one is taken.
    const scale = gradientLength === undefined ? undefined : line["world.scale"];
    cap = scale === undefined ? nextGradientCap(gradientCap, cap, line) : { scale };
    caps.set(update, cap);
  }
  return caps;
}

function withoutEpisodes(update: number): ReplayedUpdate {
  const divergence = { update, quantity: "episodes", recorded: undefined, recomputed: undefined };
  return { update, compared: [], left: [], learnt: false, divergences: [divergence] };
}

/** The episodes of each update as the groups they were; groups are numbered through the whole run. */
function* updatesOf(
  episodes: Iterable<Episode>,
  groupsPerUpdate: number,
): Generator<{ readonly update: number; readonly groups: readonly Group[] }> {
  let current = new Map<number, Episode[]>();
  let update = 0;
  const groups = (): readonly Group[] =>
    [...current.entries()]
      .sort(([a], [b]) => a - b)
      .map(([index, members]) => ({ index, task: members[0]!.task, episodes: members }));
  for (const episode of episodes) {
    const at = Math.floor(episode.group / groupsPerUpdate);
    if (at !== update && current.size > 0) {
      yield { update, groups: groups() };
      current = new Map();
    }
    update = at;
    const index = episode.group % groupsPerUpdate;
    current.set(index, [...(current.get(index) ?? []), episode]);
  }
  if (current.size > 0) yield { update, groups: groups() };
}

/** What came out, and which of it an engine had a hand in. */
interface Recomputed {
  readonly line: MetricsLine;
  readonly byEngine: (quantity: string) => boolean;
  readonly learnt: boolean;
}

interface Replayer {
  recompute(update: number, groups: readonly Group[]): Promise<Recomputed>;
  close(): Promise<void>;
}

async function createReplayer(
  folder: string,
  config: TrainConfig,
  losses: boolean,
  caps: ReadonlyMap<number, GradientCap>,
): Promise<Replayer> {
  const { maxReturn } = openEnvironment({ ...config.env, name: String(config.env.name) });
  const reference = join(folder, REFERENCE);
  const configFile = join(reference, "config.json");
  const maxTokens = parseModelConfig(
    JSON.parse(readFileSync(configFile, "utf8")),
    configFile,
  ).maxContext;
  const critic = config.advantage.name === "ppo";
  const sampler = config.engine.sampler !== undefined;
  let engine: Engine | undefined;

  const capAt = (index: number): GradientCap => caps.get(index) ?? {};
  const prepare = (
    index: number,
    groups: readonly Group[],
    advantages: Advantages,
    results = {},
    paw = config.paw,
  ): Update => {
    const update = prepareUpdate(groups, advantages, {
      paw,
      normaliser: config.objective.normaliser,
      maxReturn,
      ownGroups: critic,
      maxTokens,
      results,
    });
    const { scale } = capAt(index);
    return scale === undefined ? update : scaleWorld(update, scale);
  };
  const cut = (update: Update, index: number) =>
    minibatches(update, {
      normaliser: config.objective.normaliser,
      minibatch: config.minibatch,
      seed: updateSeed(config, index),
    });

  /** With the engine at the weights before the update: everything. */
  const relearn = async (
    index: number,
    groups: readonly Group[],
    weights: string,
    stepsBefore: number,
  ): Promise<Recomputed> => {
    engine ??= await startEngine(reference, config, critic);
    await engine.load(weights);
    const scored = await scoreActions(engine, groups, {
      old: sampler,
      reference: config.objective.kl > 0,
      entropies: config.paw.loss !== "off" && config.paw.entropy === "full",
      values: critic,
    });
    const advantages = computeAdvantages(groups, config.advantage, scored.valueTable);
    const prepared = prepare(index, groups, advantages, scored.results);
    const learnt =
      prepared.sequences.length === 0
        ? undefined
        : await learn(engine, prepared, {
            objective: updateObjective(config.objective, config.paw, { critic, sampler }),
            normaliser: config.objective.normaliser,
            minibatch: config.minibatch,
            optimizer: config.optimizer,
            stepsBefore,
            stepsInAll: expectedSteps(stepsBefore, index, config),
            seed: updateSeed(config, index),
          });
    return {
      line: metricsOf(index, groups, prepared, learnt, capAt(index)),
      byEngine: (name) => name in (learnt?.metrics ?? {}) || name === "policy.actionEntropy",
      learnt: true,
    };
  };

  /** Without weights: what the record alone determines. */
  const recount = (index: number, groups: readonly Group[]): Recomputed => {
    const full = config.paw.loss !== "off" && config.paw.entropy === "full";
    const advantages = critic ? noAdvantages(groups) : computeAdvantages(groups, config.advantage);
    const prepared = prepare(index, groups, advantages, {}, { ...config.paw, entropy: "sampled" });
    const learnt =
      prepared.sequences.length === 0
        ? undefined
        : // How a sampler's tokens weigh is not in the record.
          atRatioOne(cut(prepared, index), config, { withLoss: !critic && !sampler });
    const unknown = full
      ? ["world.targets", "world.tokens", "train.tokens", "policy.actionEntropy"]
      : [];
    const line = Object.entries(metricsOf(index, groups, prepared, learnt, capAt(index)));
    return {
      line: Object.fromEntries(line.filter(([name]) => !unknown.includes(name))),
      byEngine: (name) => name === "policy.loss",
      learnt: false,
    };
  };

  return {
    async recompute(index, groups) {
      if (!losses) return recount(index, groups);
      const checkpoint = checkpointAfter(folder, index);
      if (checkpoint === undefined && index > 0) return recount(index, groups);
      const steps = checkpoint?.state.optimizerSteps ?? 0;
      return relearn(index, groups, checkpoint?.folder ?? reference, steps);
    },
    close: async () => engine?.dispose(),
  };
}

async function startEngine(
  reference: string,
  { engine: options }: TrainConfig,
  valueHead: boolean,
): Promise<Engine> {
  const engine = await openEngine(withoutSampler(options), { folder: reference }, { valueHead });
  await engine.snapshotReference();
  return engine;
}

/** A table of zeros, for where advantages cannot be known. */
function noAdvantages(groups: readonly Group[]): Advantages {
  const table = groups.map((group) =>
    group.episodes.map((episode) => (episode.stop === "broken" ? [] : episode.steps.map(() => 0))),
  );
  return { advantages: table };
}

/**
 * What learning would report if no weight had moved since the actions were sampled: the counts of tokens,
 * and the policy loss of an update that is one mini-batch. Of several, all but the first are learnt with
 * weights that have moved.
 */
function atRatioOne(
  batches: readonly (readonly TrainSequence[])[],
  { objective, paw }: TrainConfig,
  { withLoss }: { readonly withLoss: boolean },
): Learnt {
  // Terms that need more than the record are left out; those that stay do not depend on them.
  const known = updateObjective({ ...objective, kl: 0, entropy: 0 }, paw, { critic: false });
  const metrics: Record<string, number> = {};
  let tokens = 0;
  for (const { ids, inputs } of batches.flat()) {
    const values = { count: ids.length, quantities: { logprob: inputs.oldLogprob! }, inputs };
    const sums = evaluateObjective(known, values).metrics;
    for (const name of ["policy.tokens", "world.tokens", "policy.loss"]) {
      if (name in sums) metrics[name] = (metrics[name] ?? 0) + sums[name]!;
    }
    tokens += ids.length;
  }
  const { "policy.loss": loss, ...counts } = metrics;
  const lossIsKnown = withLoss && batches.length === 1;
  return {
    metrics: { ...counts, ...(lossIsKnown && { "policy.loss": loss! }) },
    optimizerSteps: batches.length,
    tokens,
  };
}

function metricsOf(
  index: number,
  groups: readonly Group[],
  prepared: Update,
  learnt: Learnt | undefined,
  gradientCap: GradientCap,
): MetricsLine {
  const seconds = { rollout: 0, score: 0, prepare: 0, measure: 0, learn: 0 };
  const gradients = undefined;
  const line = updateMetrics({
    index,
    groups,
    prepared,
    learnt,
    gradients,
    gradientCap,
    optimizerSteps: 0,
    seconds,
  });
  return Object.fromEntries(Object.entries(line).filter(([name]) => isComparable(name)));
}

const isComparable = (name: string): boolean =>
  !/^(seconds\.|memory\.|eval\.|gradient\.|update$)/.test(name);

function compare(
  recorded: MetricsLine,
  { line, byEngine, learnt }: Recomputed,
  { tolerance }: ReplayOptions,
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
