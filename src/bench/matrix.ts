/** The matrix of a comparison: settings × algorithms × arms × seeds, each a training run. */
import { join } from "node:path";
import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { mergeTrees } from "../config/settings-tree.js";
import { findEnvKind } from "../envs/registry.js";
import { type TrainConfig, trainConfig } from "../train/config.js";
import { type Algorithm, armConfig, armName, PLAIN } from "./arms.js";
import type { ComparisonOptions } from "./options.js";
import { type Changes, settingConfig } from "./settings.js";

/** One training run of the comparison. */
export interface Job {
  /** `SETTING/ARM/SEED`. */
  readonly id: string;
  readonly setting: string;
  readonly algorithm: Algorithm;
  readonly arm: string;
  readonly seed: number;
  readonly folder: string;
  readonly config: TrainConfig;
}

/** The warm start of a setting. */
export interface Start {
  readonly setting: string;
  readonly folder: string;
  readonly config: TrainConfig;
}

/** The folder with the weights and the tokenizer that a setting's runs start from. */
export const startModel = (out: string, setting: string): string =>
  join(out, setting, "start", "model");

/** The warm start of each setting that some job needs. */
export function startsOf(options: ComparisonOptions, jobs: readonly Job[]): readonly Start[] {
  const settings = [...new Set(jobs.map((job) => job.setting))];
  return settings.map((setting) => ({
    setting,
    folder: join(options.out, setting, "start"),
    config: checked(mergeTrees(settingConfig(setting, options.train), { updates: 0 })),
  }));
}

/** All runs, ordered so that every arm gets its first seed before any gets its second. */
export function jobsOf(options: ComparisonOptions): readonly Job[] {
  const { out, train } = options;
  const arms = [...new Set(options.arms)];
  const jobs = options.settings.flatMap((setting) =>
    [...new Set(options.seeds)].flatMap((seed) =>
      options.algorithms.flatMap((algorithm) =>
        arms.map((arm): Job => {
          const name = armName(algorithm, arm);
          const config = mergeTrees(armConfig(settingConfig(setting, train), algorithm, arm), {
            seed,
            model: { start: startModel(out, setting) },
            warmStart: { episodes: 0 },
            engine: { threads: options.threads },
          });
          return {
            id: `${setting}/${name}/${seed}`,
            setting,
            algorithm,
            arm: name,
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
  { only, part }: Pick<ComparisonOptions, "only" | "part">,
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
  const parsed = trainConfig(findEnvKind(String(env.name))).safeParse(config);
  if (!parsed.success)
    throw new ConfigError(`invalid run in the comparison: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}
