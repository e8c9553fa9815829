/**
 * How long a run will take, estimated from its settings, one episode of a teacher, and a measured
 * second of the engine's work.
 */

import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { supervisedObjective } from "@pawl/core/objectives/supervised.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import type { EvaluatedModel } from "@pawl/core/train/evaluate.js";
import { checkLengths, imitationSequences } from "@pawl/core/train/sft.js";
import type { MergedSequence } from "@pawl/core/update/merge.js";
import { isPreset, presetConfig } from "@pawl/engine-cpu/init.js";
import { isFetched, isHere } from "@pawl/models/fetch-model.js";
import { leastMemory, memoryHere, memoryNeeds } from "@pawl/models/model-memory.js";
import { parseModelConfig } from "@pawl/models/weights/config-json.js";
import { LORA_TARGETS, trainedSpecs } from "@pawl/models/weights/lora.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { tensorSpecs } from "@pawl/models/weights/tensor-names.js";
import { contradictions } from "./checks.js";
import type { TrainConfig } from "./config.js";
import { isRemote, notMeasured } from "./engines.js";
import { checkTeacher, type TeacherHere } from "./open-distillation.js";
import { checkStart, type ModelStart, openModel, startOf } from "./open-model.js";
import { teacherEpisodes } from "./teacher-episodes.js";
import { worldTexts } from "./world-text.js";

/** The sizes of a run in the embedded engine; memory in bytes, estimated. */
export interface SizePlan {
  readonly parameters: number;
  readonly trained: number;
  /** Whether that is adapters on frozen weights. */
  readonly adapters: boolean;
  readonly memory: number;
  /** What no setting makes less; and with adapters in place of all weights. */
  readonly least: number;
  readonly leastFrozen: number;
  readonly here: number;
  /** Of the memory, what a teacher takes that is computed here. */
  readonly teacher?: number;
}

/** The sizes of a run that starts from a folder; undefined where the engine is a server's, or says what is wrong. */
export function sizePlan(
  start: ModelStart,
  { engine }: Pick<TrainConfig, "engine">,
  teacher?: TeacherHere,
): SizePlan | undefined {
  const config = isRemote(engine) || !("folder" in start) ? undefined : shapeOf(start.folder);
  return config && sizesOf(config, engine, teacher);
}

/** The sizes of a run of a model from scratch, with a tokenizer of this many tokens. */
export function scratchSizePlan(
  { model, engine }: Pick<TrainConfig, "engine" | "model">,
  vocabularySize: number,
  teacher?: TeacherHere,
): SizePlan | undefined {
  if (isRemote(engine) || !isPreset(model.start)) return undefined;
  return sizesOf(presetConfig(model.start, vocabularySize, model.maxContext), engine, teacher);
}

const parametersOf = (config: ModelConfig): number =>
  countOf(tensorSpecs(config).filter(({ optional }) => !optional));

/** What a teacher adds: its weights alone, which nothing makes less, and with what scoring takes. */
function teacherSizes(teacher: TeacherHere | undefined) {
  const config = teacher && shapeOf(teacher.folder);
  if (config === undefined) return undefined;
  const parameters = parametersOf(config);
  const { score, merged } = memoryNeeds(config, parameters);
  return { weights: 4 * parameters, memory: score + (teacher!.adapters ? merged : 0) };
}

function sizesOf(
  config: ModelConfig,
  engine: TrainConfig["engine"],
  taughtBy?: TeacherHere,
): SizePlan {
  const { loraRank: rank, loraTargets: targets = LORA_TARGETS } = engine;
  const parameters = parametersOf(config);
  const trained =
    rank === 0 ? parameters : countOf(trainedSpecs(config, false, { rank, alpha: 1, targets }));
  const { train, lora, merged } = memoryNeeds(config, parameters);
  const adapters = rank > 0;
  const teacher = teacherSizes(taughtBy);
  const weights = teacher?.weights ?? 0;
  return {
    ...{ parameters, trained, adapters, here: memoryHere() },
    memory: (adapters ? lora : train) + (teacher?.memory ?? 0),
    least: leastMemory(parameters, trained) + (adapters ? merged : 0) + weights,
    leastFrozen: leastMemory(parameters, 0) + merged + weights,
    ...(teacher && { teacher: teacher.memory }),
  };
}

/** Whether a run fits only if its episodes are short. */
export const isTight = ({ memory, here }: SizePlan): boolean => memory > here;

/** Why a run that is tight is not measured: the trial might be ended by the machine. */
export const TIGHT = "a trial might take more memory than there is";

/** Refuses a run that cannot fit, whatever its settings, with what would. */
export function requireMemory(plan: SizePlan): void {
  const { parameters, trained, adapters, least, leastFrozen, here, teacher } = plan;
  if (least <= here) return;
  const frozen = !adapters && leastFrozen * 1.1 < here;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  const beside = teacher === undefined ? "" : " beside its teacher";
  const away =
    teacher === undefined ? "" : "let a server have the teacher (--distillation.engine), ";
  throw new ConfigError(
    `model.start: training ${(trained / 1e6).toFixed(0)} of ${(parameters / 1e6).toFixed(0)} million parameters${beside} takes at least ${gigabytes(least)} of memory, and there are ${gigabytes(here)} here: ${frozen ? "train adapters (--engine.lora-rank 16), " : ""}${away}take a smaller model, or train on an engine server (--engine http://…, docs/gpu.md)`,
  );
}

function shapeOf(folder: string): ModelConfig | undefined {
  const file = join(folder, "config.json");
  try {
    return parseModelConfig(JSON.parse(readRegularText(file)), file);
  } catch (error) {
    if (error instanceof UserError || error instanceof SyntaxError || isSystemError(error))
      return undefined;
    throw error;
  }
}

const isSystemError = (error: unknown): boolean => error instanceof Error && "code" in error;

const countOf = (specs: readonly { readonly shape: readonly number[] }[]): number =>
  specs.reduce((sum, { shape }) => sum + shape.reduce((all, size) => all * size, 1), 0);

/** What an update and the parts of a run take, at most: every episode as long as it may be. */
export interface TimePlan {
  readonly episodes: number;
  readonly steps: number;
  /** Tokens to learn from, of an update. */
  readonly tokens: number;
  /** Measured: tokens a second, learnt and written. */
  readonly learnt: number;
  readonly written: number;
  /** Seconds: of imitation, of each update, and of all evaluations. */
  readonly imitation: number;
  readonly update: number;
  readonly evaluation: number;
}

/** Why there is no estimate. */
export interface Unknown {
  readonly unknown: string;
}

/** Who could show an episode. */
const teacherOf = (config: TrainConfig, environment: Environment) =>
  ([config.warmStart.teacher, "expert", "seeker"] as const).find(
    (one) => environment[one] !== undefined,
  );

/** Whether there is something to estimate, and an episode to estimate it from. */
export const hasTimePlan = (config: TrainConfig, environment: Environment): boolean =>
  (config.updates > 0 || config.warmStart.episodes > 0) &&
  teacherOf(config, environment) !== undefined;

/** Tokens of a text to learn from, and of how many at once, where that takes less than is measured. */
const MEASURED_TOKENS = 128;
const MEASURED_TEXTS = 16;
/** A model from scratch needs a fraction of a second. */
const MEASURED_SECONDS = { pretrained: 1, scratch: 0.4 };
/** Texts written side by side, the tokens of their prompt, and theirs. */
const ROWS = 16;
const PROMPT_TOKENS = 32;
const WRITTEN = 8;
/** A forward pass takes about a third of a forward and backward pass. */
const FORWARD = 1 / 3;

/** Unknown if no teacher shows an episode, or the engine cannot be measured without a trace. */
export async function timePlan(
  config: TrainConfig,
  model: EvaluatedModel,
): Promise<TimePlan | Unknown> {
  const { environment, engine } = model;
  if (!hasTimePlan(config, environment)) return { unknown: NO_EPISODE };
  if (!engine.capabilities.discardGradients)
    return { unknown: `${engine.capabilities.name} cannot take back a trial of learning` };
  const shown = await teacherEpisode(config, model);
  if (shown === undefined) return { unknown: NO_EPISODE };
  if (config.warmStart.episodes > 0)
    checkLengths([shown.sequences], engine.capabilities.maxContext);
  const steps = config.stepLimit ?? environment.stepLimit;
  const speed = await measure(model, shown.sequences[0]!, {
    rows: Math.min(ROWS, config.groupSize),
    seconds: MEASURED_SECONDS[isPreset(config.model.start) ? "scratch" : "pretrained"],
  });
  const tokens = Math.min(shown.tokensOf(steps), episodeLimit(shown, steps, model));
  const playing = (episodes: number): number =>
    episodes *
    (steps * shown.response * speed.write +
      (tokens - steps * shown.response) * FORWARD * speed.learn);
  const { warmStart, evaluation, updates, groups, groupSize } = config;
  const episodes = groups * groupSize;
  const evaluated = evaluation.splits.reduce(
    (sum, split) => sum + Math.min(evaluation.tasks, environment.tasks(split).length),
    0,
  );
  const times = evaluation.every === 0 ? 0 : 1 + Math.ceil(updates / evaluation.every);
  return {
    ...{ episodes, steps, tokens: episodes * tokens },
    ...{ learnt: 1 / speed.learn, written: 1 / speed.write },
    imitation: warmStart.episodes * warmStart.sft.epochs * shown.tokens * speed.learn,
    update: playing(episodes) + episodes * tokens * speed.learn,
    evaluation: times * playing(evaluated),
  };
}

/** Why nothing is known without a teacher, or without anything to do. */
export const NO_EPISODE = "there is no episode of a teacher to estimate from";

interface Shown {
  readonly sequences: readonly MergedSequence[];
  /** Its tokens, and those of an episode of so many steps. */
  readonly tokens: number;
  tokensOf(steps: number): number;
  /** Tokens of its mean response. */
  readonly response: number;
}

/** An episode of a teacher as it would be learnt. */
async function teacherEpisode(
  config: TrainConfig,
  model: EvaluatedModel,
): Promise<Shown | undefined> {
  const { environment } = model;
  const teacher = teacherOf(config, environment)!;
  const warmStart = { ...config.warmStart, teacher, episodes: 1, epsilon: 0, runs: [] };
  try {
    const [episode] = await teacherEpisodes(model, { ...config, warmStart });
    const sequences = imitationSequences(episode!, model, {
      observationWeight: 0,
      randomActions: false,
    });
    const tokens = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
    const targets = sequences.flatMap((one) => [...Array.from(one.targets ?? [])]);
    const taken = episode!.steps.length;
    // A conversation that is one sequence has its opening once.
    const opening = sequences.length === 1 ? Math.max(0, targets.indexOf(1)) : 0;
    return {
      sequences,
      tokens,
      tokensOf: (steps) => Math.round(opening + ((tokens - opening) / taken) * steps),
      response: targets.filter((target) => target > 0).length / taken,
    };
  } catch (error) {
    // A run that plays the teacher says what is wrong; one that does not has no need of it.
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** An episode that is one sequence ends where the context does. */
const episodeLimit = ({ sequences }: Shown, steps: number, { engine }: EvaluatedModel): number =>
  engine.capabilities.maxContext * (sequences.length === 1 ? 1 : steps);

/** How much to measure: texts written side by side, and for how long. */
interface Measuring {
  readonly rows: number;
  readonly seconds: number;
}

/** Seconds for a token: learnt, and written beside others. Nothing of it stays in the engine. */
async function measure(
  { engine }: EvaluatedModel,
  sequence: MergedSequence,
  { rows, seconds }: Measuring,
) {
  const cut = <T extends ArrayLike<number>>(values: T) =>
    Array.from(values).slice(
      0,
      Math.min(MEASURED_TOKENS, engine.capabilities.maxContext - WRITTEN),
    );
  const ids = cut(sequence.ids);
  const targets = ids.map((_, i) => (i > 0 ? 1 : 0));
  const sample = { ids, targets, inputs: { weight: targets.map((one) => one / ids.length) } };
  const learn = (texts: number) => () =>
    engine.forwardBackward(new Array<typeof sample>(texts).fill(sample), supervisedObjective);
  const prompt = ids.slice(0, PROMPT_TOKENS);
  const writeOnce = () => engine.sample([{ prompt, count: rows, maxTokens: WRITTEN, seed: 0 }]);
  const half = seconds / 2;
  try {
    // The first time of each prepares the computation.
    await learn(1)();
    const one = await secondsOf(learn(1), 0);
    const texts = Math.max(1, Math.min(MEASURED_TEXTS, Math.floor(half / one)));
    if (texts > 1) await learn(texts)();
    const learnt = (await secondsOf(learn(texts), half)) / (texts * ids.length);
    await writeOnce();
    const written = (await secondsOf(writeOnce, half)) / (rows * WRITTEN);
    return { learn: learnt, write: written };
  } finally {
    await engine.discardGradients();
  }
}

/** The seconds that some work takes, done again until so many have passed. */
async function secondsOf(work: () => Promise<unknown>, least: number): Promise<number> {
  const start = performance.now();
  const passed = (): number => (performance.now() - start) / 1000;
  let times = 0;
  do {
    await work();
    times += 1;
  } while (passed() < least);
  return passed() / times;
}

/** What a run will take, as far as it can be said beforehand. */
export interface RunPlan {
  readonly size?: SizePlan | undefined;
  readonly time?: TimePlan | Unknown | undefined;
  /** Settings that contradict what the model is, where the run does not say so itself. */
  readonly contradictions?: readonly string[];
}

/**
 * What a run would take: measured with its model, which is opened for that, here or on a server of ours.
 * Nothing is fetched.
 */
export async function planRun(config: TrainConfig): Promise<RunPlan> {
  const { start: name } = config.model;
  const told = "the first lines of the run say it";
  const isServed = name === "served" && isRemote(config.engine);
  if (isServed)
    return { time: { unknown: `the model's tokenizer is on the engine server; ${told}` } };
  for (const needed of [name, config.distillation.teacher ?? name])
    if (!isPreset(needed) && isFetched(needed) && !(await isHere(needed)))
      return {
        time: {
          unknown: `${needed} is not here yet; fetch it first (pawl model pull ${needed}), or ${told}`,
        },
      };
  const offline = { ...process.env, HF_HUB_OFFLINE: "1" };
  const start = await startOf(config, { environment: offline });
  const teacher = await checkTeacher(config, { environment: offline });
  const size = sizePlan(start, config, teacher);
  if (size !== undefined) requireMemory(size);
  await checkStart(start, config);
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  try {
    const plan = {
      size,
      ...("folder" in start && {
        contradictions: contradictions(config, await loadTokenizer(start.tokenizer)),
      }),
    };
    if (!hasTimePlan(config, environment)) return { ...plan, time: { unknown: NO_EPISODE } };
    if ("preset" in start && environment.madeUp !== true)
      return { time: { unknown: `the world's text is not read beforehand; ${told}` } };
    const isTooTight = size !== undefined && isTight(size);
    const why = isTooTight ? TIGHT : await notMeasured(config.engine);
    if (why !== undefined) return { ...plan, time: { unknown: why } };
    const words = promptStyle(environment.prompt, config.prompt);
    const { engine, tokenizer } = await openModel({
      start,
      engine: config.engine,
      scratch: {
        maxContext: config.model.maxContext,
        // A few episodes have most of the world's words.
        tokenizer: async () =>
          buildTokenizer(await worldTexts(environment, words, PLAN_TASKS), {
            chat: config.prompt.style === "chat",
          }),
      },
    });
    try {
      const style = promptStyle(environment.prompt, config.prompt, tokenizer);
      return {
        ...plan,
        size: size ?? scratchSizePlan(config, tokenizer.vocabularySize, teacher),
        time: await timePlan(config, { environment, style, engine, tokenizer }),
      };
    } finally {
      await engine.dispose();
    }
  } finally {
    await environment.close?.();
  }
}

/** Tasks whose texts make the tokenizer of a model that is only measured. */
const PLAN_TASKS = 30;
