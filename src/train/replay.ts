/**
 * Replay: the numbers of every update, computed again from the recorded episodes and compared.
 *
 * What needs no weights is computed again for every update and must come out the same: success, returns
 * and counts, λ, selection, action entropies, the tokens learnt, and, where the update was learnt in one
 * mini-batch, the policy loss, which at ratio 1 depends on nothing but advantages and weights.
 *
 * Where the weights an update started from are still there (the start of RL, and a checkpoint of that very
 * moment), the update is learnt again from the recorded tokens, on a copy, so that all losses, KL,
 * probabilities and gradients are compared as well.
 *
 * Not compared: evaluations, of which the episodes are not recorded, times, memory, and gradients that were
 * measured on a sample, as they once were; a cap on λ is computed again from the recorded ones, and a scale to
 * another loss's length is taken as recorded. PPO's advantages,
 * selection by full entropy, and actions whose log-probabilities at their temperature were not told need the
 * weights, so without them what depends on those is left out too.
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
import { checkpointAfter, latestCheckpoint } from "../runs/checkpoints.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import type { RecordedRun } from "../runs/run-folder.js";
import { promptStyle } from "../text/prompt.js";
import { loadTokenizer } from "../text/tokenizer.js";
import { transitionsOf } from "../update/transitions.js";
import { prepareUpdate, scaleWorld, type Update } from "../update/update.js";
import type { TrainConfig } from "./config.js";
import { correct } from "./corrections.js";
import { type Critic, hasOwnCritic, openCritic } from "./critic.js";
import { updateSeed } from "./draws.js";
import { type GradientCap, nextGradientCap } from "./gradient-cap.js";
import { type GradientRelation, measureGradients } from "./gradients.js";
import { type Learnt, learn, minibatches } from "./learn.js";
import { updateMetrics } from "./metrics.js";
import { openSavedModel } from "./open-model.js";
import { trainConfigOf, trainConfigsOf } from "./recorded-config.js";
import { compare, isComparable, type Recomputed, type ReplayedUpdate } from "./replay-compare.js";
import { expectedSteps } from "./rl.js";
import { findSavedModel, REFERENCE, TOKENIZER } from "./saved-model.js";
import { scoreActions } from "./score.js";

/** How to replay. */
export interface ReplayOptions {
  /** Learn updates again where their weights are still there. */
  readonly losses: boolean;
  /** How far what an engine computed may be off, relative to its size, or to 1 where it is smaller than 0.1. */
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
  const replayer = await createReplayer(
    run.folder,
    configAt,
    options.losses,
    capsOf(lines, config),
  );
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
  { paw: { gradientCap, gradientLength } }: TrainConfig,
): ReadonlyMap<number, GradientCap> {
  const caps = new Map<number, GradientCap>();
  let cap: GradientCap = {};
  for (let update = 0; lines.has(update); update++) {
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

interface Replayer {
  recompute(update: number, groups: readonly Group[]): Promise<Recomputed>;
  close(): Promise<void>;
}

async function createReplayer(
  folder: string,
  configAt: (update: number) => TrainConfig,
  losses: boolean,
  caps: ReadonlyMap<number, GradientCap>,
): Promise<Replayer> {
  // What a resume may change is asked for by update; the rest is as it was from the start.
  const config = configAt(0);
  const usesSampler = (update: number): boolean => configAt(update).engine.sampler !== undefined;
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  const { maxReturn } = environment;
  const reference = join(folder, REFERENCE);
  const configFile = join(reference, "config.json");
  const maxTokens = parseModelConfig(
    JSON.parse(readFileSync(configFile, "utf8")),
    configFile,
  ).maxContext;
  const ppo = config.advantage.name === "ppo";
  const own = hasOwnCritic(config, latestCheckpoint(folder)?.folder);
  let engine: Engine | undefined;
  let critic: Critic | undefined;

  const capAt = (index: number): GradientCap => caps.get(index) ?? {};
  const prepare = (
    groups: readonly Group[],
    advantages: Advantages,
    results = {},
    paw = config.paw,
  ): Update =>
    prepareUpdate(groups, advantages, {
      paw,
      normaliser: config.objective.normaliser,
      maxReturn,
      ownGroups: ppo,
      maxTokens,
      results,
    });
  const capped = (update: Update, index: number): Update => {
    const { scale } = capAt(index);
    return scale === undefined ? update : scaleWorld(update, scale);
  };
  const cut = (update: Update, index: number) =>
    minibatches(update, {
      normaliser: config.objective.normaliser,
      minibatch: config.minibatch,
      seed: updateSeed(config, index),
    });

  /** The teacher takes over again: it is as deterministic as its world. */
  const corrected = async (index: number, groups: readonly Group[]) =>
    correct(groups, config.corrections, {
      environment,
      style: promptStyle(environment.promptFamily, config.prompt),
      tokenizer: await loadTokenizer(join(folder, TOKENIZER)),
      stepLimit: config.stepLimit ?? environment.stepLimit,
      maxTokens,
      seed: updateSeed(config, index),
    });

  /** With the engine at the weights before the update: everything. */
  const relearn = async (
    index: number,
    groups: readonly Group[],
    weights: string,
    stepsBefore: number,
  ): Promise<Recomputed> => {
    engine ??= await startEngine(folder, ppo && !own);
    const sampler = usesSampler(index);
    if (own) critic ??= await openCritic(config, { folder: reference }, maxReturn);
    await engine.load(weights);
    await (weights === reference ? critic?.start(reference) : critic?.load(weights));
    const wanted = {
      old: sampler,
      reference: config.objective.kl > 0,
      entropies: config.paw.loss !== "off" && config.paw.entropy === "full",
      values: ppo,
    };
    const scored = await scoreActions(engine, groups, wanted, critic);
    const advantages = computeAdvantages(groups, config.advantage, scored.valueTable);
    const unscaled = prepare(groups, advantages, scored.results);
    const objective = { critic: ppo && !own, sampler };
    const gradients = await measureGradients(engine, unscaled, config, objective, index);
    const prepared = capped(unscaled, index);
    const corrections = await corrected(index, groups);
    const how = {
      normaliser: config.objective.normaliser,
      minibatch: config.minibatch,
      stepsBefore,
      stepsInAll: expectedSteps(stepsBefore, index, configAt(index)),
      seed: updateSeed(config, index),
    };
    const taught = prepared.sequences.length > 0;
    const learnt = taught
      ? await learn(engine, prepared, {
          ...how,
          objective: updateObjective(config.objective, config.paw, objective),
          optimizer: config.optimizer,
          ...(corrections !== undefined && { corrections }),
        })
      : undefined;
    const valued = taught ? await critic?.learn(prepared, how) : undefined;
    const computed = { ...learnt?.metrics, ...valued };
    const line = metricsOf(index, groups, prepared, learnt, capAt(index), gradients);
    return {
      line: { ...line, ...valued },
      byEngine: (name) =>
        (name in computed && name !== "learningRate") ||
        /^(policy\.actionEntropy|gradient\..*)$/.test(name),
      learnt: true,
    };
  };

  /** Without weights: what the record alone determines. */
  const recount = (index: number, groups: readonly Group[]): Recomputed => {
    const untold = transitionsOf(groups).some(({ logprobs }) => logprobs === undefined);
    const full = config.paw.loss !== "off" && (config.paw.entropy === "full" || untold);
    const advantages = ppo ? noAdvantages(groups) : computeAdvantages(groups, config.advantage);
    const results = untold ? { oldLogprobs: noLogprobs(groups) } : {};
    const byWords = { ...config.paw, entropy: "sampled" } as const;
    const prepared = capped(prepare(groups, advantages, results, byWords), index);
    const learnt =
      prepared.sequences.length === 0
        ? undefined
        : // How a sampler's tokens weigh is not in the record.
          atRatioOne(cut(prepared, index), config, {
            withLoss: !ppo && !usesSampler(index) && !untold,
          });
    const unknown = full
      ? ["world.targets", "world.tokens", "train.tokens", "policy.actionEntropy"]
      : untold
        ? ["policy.actionEntropy"]
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
    async close() {
      await engine?.dispose();
      await critic?.dispose();
    },
  };
}

async function startEngine(folder: string, valueHead: boolean): Promise<Engine> {
  const saved = { ...findSavedModel(join(folder, REFERENCE)), config: trainConfigOf(folder) };
  const { engine } = await openSavedModel(saved, {}, { valueHead });
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

/** Zeros, for where the log-probabilities that actions were drawn with cannot be known. */
function noLogprobs(groups: readonly Group[]): readonly Float32Array[] {
  return transitionsOf(groups).map(({ actionEnd }) => new Float32Array(actionEnd));
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
  gradients?: GradientRelation,
): MetricsLine {
  const seconds = { rollout: 0, score: 0, prepare: 0, measure: 0, correct: 0, learn: 0 };
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
