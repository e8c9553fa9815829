/** The matrix of a comparison: settings × algorithms × arms × seeds, each a training run. */
import { join, relative } from "node:path";
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { mergeTrees } from "../config/settings-tree.js";
import { findEnvKind } from "../envs/registry.js";
import { type RwmlConfig, rwmlConfig } from "../rwml/config.js";
import { type TrainConfig, trainConfig } from "../train/config.js";
import { type Algorithm, armConfig, armName, PLAIN } from "./arms.js";
import type { ComparisonOptions } from "./options.js";
import { readResult } from "./result-file.js";
import { type Changes, settingConfig } from "./settings.js";
import { observationWeightOf, startBefore, startFolderName, startNameOf } from "./start-parts.js";
import { MODEL } from "./start-weights.js";

/** One training run of the comparison. */
export interface Job {
  /** `SETTING/ARM/SEED`. */
  readonly id: string;
  readonly setting: string;
  readonly algorithm: Algorithm;
  readonly arm: string;
  /** The start's name; "" is the setting's own warm start. */
  readonly start: string;
  readonly seed: number;
  readonly folder: string;
  readonly config: TrainConfig;
}

/** A model that runs of a setting start from. */
export interface Start {
  /** `SETTING/start` or `SETTING/start-NAME`. */
  readonly id: string;
  readonly setting: string;
  readonly name: string;
  readonly folder: string;
  /** The warm start, and how the start is evaluated. */
  readonly config: TrainConfig;
  /** RWML from another start, in place of a warm start. */
  readonly rwml?: RwmlConfig;
}

/** The folder with the weights and the tokenizer that runs start from. */
const startModel = (out: string, setting: string, name = ""): string =>
  join(out, setting, startFolderName(name), MODEL);

/** The starts that some job needs, each after the one that it continues from. */
export function startsOf(options: ComparisonOptions, jobs: readonly Job[]): readonly Start[] {
  const needed = new Map<string, Start>();
  const add = (setting: string, name: string): void => {
    const id = `${setting}/${startFolderName(name)}`;
    if (needed.has(id)) return;
    const before = startBefore(name);
    if (before !== undefined) add(setting, before);
    needed.set(id, { id, setting, name, ...startIn(options, setting, name, before) });
  };
  for (const { setting, start } of jobs) add(setting, start);
  return [...needed.values()];
}

function startIn(
  options: ComparisonOptions,
  setting: string,
  name: string,
  before: string | undefined,
): Pick<Start, "folder" | "config" | "rwml"> {
  const { out } = options;
  const base = settingConfig(setting, options.train);
  const weight = observationWeightOf(name, base as TrainConfig);
  const learning = weight === undefined ? {} : { sft: { observationWeight: weight, mean: "each" } };
  const config = checked(mergeTrees(base, { updates: 0, warmStart: learning }));
  const folder = join(out, setting, startFolderName(name));
  if (before === undefined) return { folder, config };
  const { env, prompt, engine, maxTokens, stepLimit, evaluation, split, seed } = config;
  const shared = { env, prompt, engine, maxTokens, evaluation, split, seed };
  const rwml = {
    ...options.rwml,
    ...shared,
    ...(stepLimit !== undefined && { stepLimit }),
    model: { start: startModel(out, setting, before) },
  };
  return { folder, config, rwml: parsed(rwmlConfig(findEnvKind(String(env.name))), rwml) };
}

/** All runs, ordered so that every arm gets its first seed before any gets its second. */
export function jobsOf(options: ComparisonOptions): readonly Job[] {
  const { out, train } = options;
  const arms = [...new Set(options.arms)];
  refuseSameName(arms);
  const jobs = options.settings.flatMap((setting) =>
    [...new Set(options.seeds)].flatMap((seed) =>
      options.algorithms.flatMap((algorithm) =>
        arms.map((arm): Job => {
          const name = armName(algorithm, arm);
          const start = startNameOf(arm);
          const config = mergeTrees(armConfig(settingConfig(setting, train), algorithm, arm), {
            seed,
            model: { start: startModel(out, setting, start) },
            warmStart: { episodes: 0 },
            engine: { threads: options.threads },
          });
          return {
            id: `${setting}/${name}/${seed}`,
            setting,
            algorithm,
            arm: name,
            start,
            seed,
            folder: join(out, setting, name, `seed-${seed}`),
            config: checked(config),
          };
        }),
      ),
    ),
  );
  return chosen(jobs, options);
}

/** `plain` is left out of names, so that two arms can come to the same one. */
function refuseSameName(arms: readonly string[]): void {
  const known = new Map<string, string>();
  for (const arm of arms) {
    const name = armName("grpo", arm);
    if (known.has(name))
      throw new ConfigError(
        `--arms: ${known.get(name)} and ${arm} would have the same name and folder: put them into two comparisons with different --out`,
      );
    known.set(name, arm);
  }
}

/**
 * The name of the arm without world modelling that an arm is compared with; undefined for that arm
 * itself.
 */
export function referenceOf({
  algorithm,
  arm,
}: Pick<Job, "algorithm" | "arm">): string | undefined {
  const plain = armName(algorithm, PLAIN);
  return arm === plain ? undefined : plain;
}

function chosen(
  jobs: readonly Job[],
  { out, only, finished, part }: Pick<ComparisonOptions, "out" | "only" | "finished" | "part">,
): readonly Job[] {
  let left = jobs;
  if (only !== undefined) {
    const matches = (job: Job, name: string): boolean =>
      job.id === name || job.id === `${job.setting}/${name}`;
    const unknown = only.find((name) => !jobs.some((job) => matches(job, name)));
    if (unknown !== undefined) {
      throw new ConfigError(
        `--only: there is no run "${unknown}" in this comparison; it has ${jobs.map((job) => job.id).join(", ")}`,
      );
    }
    left = left.filter((job) => only.some((name) => matches(job, name)));
  }
  left = left.filter(
    ({ folder }) => !finished.some((other) => readResult(join(other, relative(out, folder)))),
  );
  if (part !== undefined) {
    const [which, parts] = part.split("/").map(Number) as [number, number];
    if (which < 1 || which > parts)
      throw new ConfigError(`--part: expected 1/${parts} to ${parts}/${parts}, got ${part}`);
    left = left.filter((_, i) => i % parts === which - 1);
  }
  return left;
}

function checked(config: Changes): TrainConfig {
  const { env } = config as TrainConfig;
  return parsed(trainConfig(findEnvKind(String(env.name))), config);
}

function parsed<S extends z.ZodType>(schema: S, config: unknown): z.output<S> {
  const read = schema.safeParse(config);
  if (!read.success)
    throw new ConfigError(`invalid run in the comparison: ${z.prettifyError(read.error)}`);
  return read.data;
}
