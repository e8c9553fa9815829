/**
 * The triplets of an RWML run: played or read, cut, split, and filtered of those that are too easy.
 */
import type { Engine } from "@pawl/core/engine/engine.js";
import type { Environment, Task } from "@pawl/core/envs/env.js";
import { UserError } from "@pawl/core/errors.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import { epsilonPolicy } from "@pawl/core/rollout/policies/random.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { countingEpisodes, type OnActivity } from "@pawl/core/train/activity.js";
import { optimizerOptions } from "@pawl/core/train/schedule.js";
import { fitSamples } from "@pawl/core/train/sft.js";
import { mergeContinuations } from "@pawl/core/update/merge.js";
import { engineFor } from "@pawl/training/engines.js";
import { type ModelStart, openModel, savedStartOf } from "@pawl/training/open-model.js";
import type { RwmlConfig } from "./config.js";
import { answerSequence, type Filtered, holdOut, keepHard, splitTriplets } from "./filter.js";
import { fitting, predict, rewardPredictions } from "./prediction-groups.js";
import { type Question, worldQuestion } from "./question.js";
import type { StateReward } from "./reward.js";
import { checkTools, type Triplet, type TripletData, tripletsOf } from "./triplet.js";

/** What preparing triplets works with. */
export interface TripletSetup {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly tokenizer: Tokenizer;
  readonly engine: Engine;
  readonly question: Question;
  readonly reward: StateReward;
  /** The model to train, before training. */
  readonly start: ModelStart;
  readonly signal?: AbortSignal;
  readonly onProblem: (message: string) => void;
  readonly onPhase?: (phase: "collect" | "filter") => void;
  readonly onActivity?: OnActivity | undefined;
}

/** Collects, cuts, splits and filters. */
export async function prepareTriplets(
  setup: TripletSetup,
  config: RwmlConfig,
): Promise<TripletData> {
  setup.onPhase?.("collect");
  const episodes = await collectEpisodes(setup, config);
  const held = holdOut(episodes, config.heldOut.share, mixSeed(config.seed, "held out"));
  const all = tripletsOf(episodes);
  checkTools(all, setup.style);
  const fits = fitting(setup.engine, setup.question, all, config.predictionTokens);
  const heldOut = fits.filter(({ source }) => held.has(source));
  const candidates = fits.filter(({ source }) => !held.has(source));
  setup.onPhase?.("filter");
  const [fitted, rest] = splitTriplets(
    candidates,
    config.filter.share,
    mixSeed(config.seed, "filter"),
  );
  const { kept, easy, hard } = await filterTriplets(setup, config, fitted, rest);
  const counts = {
    episodes: episodes.length,
    broken: episodes.filter(({ stop }) => stop === "broken").length,
    collected: all.length,
    tooLong: all.length - fits.length,
    heldOut: heldOut.length,
    fitted: fitted.length,
    easy,
    hard,
    kept: kept.length,
  };
  if (kept.length === 0 || heldOut.length === 0) {
    const numbers = Object.entries(counts).map(([name, n]) => `${name} ${n}`);
    throw new UserError(
      `there are not enough triplets to learn from (${numbers.join(", ")}): collect more episodes of several tasks, raise filter.keep, or, if many are too long, lower predictionTokens.`,
    );
  }
  return { train: kept, heldOut, counts, reward: setup.reward.name };
}

/** Episodes of recorded runs, or of the model itself. */
async function collectEpisodes(
  { environment, style, tokenizer, engine, signal, onProblem, onActivity }: TripletSetup,
  config: RwmlConfig,
): Promise<readonly Episode[]> {
  const { runs, epsilon } = config.collect;
  if (runs.length > 0) {
    // Episodes of several runs must stay apart, so each is renumbered.
    return runs
      .flatMap((folder) => [...openRun(folder, onProblem).episodes()])
      .map((episode, group) => ({ ...episode, group }));
  }
  const { maxTokens, temperature, stepLimit } = config;
  const policy = enginePolicy({ engine, tokenizer, style, sampling: { maxTokens, temperature } });
  const groups = await rollout({
    environment,
    style,
    policy: epsilon === 0 ? policy : epsilonPolicy(policy, epsilon),
    tasks: chooseTasks(environment, config),
    groupSize: 1,
    seed: mixSeed(config.seed, "collect"),
    onProblem,
    ...countingEpisodes("playing", config.collect.episodes, onActivity),
    stepLimit,
    signal,
  });
  return groups.flatMap((group) => group.episodes);
}

function chooseTasks(environment: Environment, config: RwmlConfig): readonly Task[] {
  const all = environment.tasks(config.split);
  const order = createRandom(mixSeed(config.seed, "tasks")).shuffle([...all.keys()]);
  return Array.from({ length: config.collect.episodes }, (_, i) => all[order[i % order.length]!]!);
}

/**
 * Fits the filter model to `fitted`, lets it predict the `rest`, and keeps what it cannot predict.
 */
async function filterTriplets(
  setup: TripletSetup,
  config: RwmlConfig,
  fitted: readonly Triplet[],
  rest: readonly Triplet[],
): Promise<Filtered> {
  const { filter, predictionTokens, seed } = config;
  const { onActivity } = setup;
  if (fitted.length === 0) return { kept: rest, easy: 0, hard: rest.length };
  // The filter model is thrown away after fitting, so it needs neither the run's sampler nor
  // copies.
  const { engine, tokenizer } = await openModel({
    start:
      filter.model === "start"
        ? setup.start
        : await savedStartOf({ engine: config.engine, model: { start: filter.model } }),
    engine: engineFor(config.engine),
    seed,
  });
  try {
    const question = worldQuestion(tokenizer, setup.style);
    const samples = mergeContinuations(fitted.map((triplet) => answerSequence(question, triplet)));
    await fitSamples(
      engine,
      samples.map((sample) => [sample]),
      {
        epochs: filter.epochs,
        batch: filter.batch,
        optimizer: optimizerOptions.parse({ learningRate: filter.learningRate }),
        seed: mixSeed(seed, "fit"),
        onStep: ({ step, steps }) =>
          onActivity?.({ what: "learning", done: step + 1, total: steps, unit: "steps" }),
        ...(setup.signal !== undefined && { signal: setup.signal }),
      },
    );
    // A filter model with a shorter context cannot predict long triplets: those count as hard.
    const readable = new Set(fitting(engine, question, rest, predictionTokens));
    const asked = rest.filter((triplet) => readable.has(triplet));
    onActivity?.({ what: "predicting", done: 0, total: asked.length, unit: "predictions" });
    const predicted = await predict(engine, question, asked, {
      count: 1,
      maxTokens: predictionTokens,
      temperature: 0,
      seed,
    });
    const { rewards } = await rewardPredictions(asked, predicted, setup.reward, setup.signal);
    const rewardOf = new Map(asked.map((triplet, i) => [triplet, rewards[i]![0]!]));
    return keepHard(
      rest,
      rest.map((triplet) => rewardOf.get(triplet) ?? 0),
      filter,
      mixSeed(seed, "filter"),
    );
  } finally {
    await engine.dispose();
  }
}
