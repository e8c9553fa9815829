/**
 * The configuration that a training run was recorded with: read by the current schema, or rejected
 * with a message.
 */

import {
  olderNames,
  parseRecorded,
  type SettingHistory,
  type Unreadable,
} from "@pawl/core/config/recorded.js";
import { type SettingsTree, valueAt, withValueAt } from "@pawl/core/config/settings-tree.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { type Manifest, readManifest, sealedManifest } from "@pawl/core/runs/manifest.js";
import { RunError } from "@pawl/core/runs/run-error.js";
import { z } from "zod";
import { type TrainConfig, trainConfig } from "./config.js";

/** A command that records runs, and its current settings. */
export interface RecordedCommand<S extends z.ZodObject> {
  readonly kind: string;
  readonly schema: (config: SettingsTree) => S;
  /**
   * How its settings have changed since runs were first recorded. A new setting whose default does
   * what runs did before needs no entry; one with another default needs `before`; a removed one
   * needs `gone`.
   */
  readonly history?: readonly SettingHistory[];
}

/** The settings of a run according to a schema; `command` is what makes such runs. */
export function recordedConfig<S extends z.ZodObject>(
  folder: string,
  { kind, config, versions }: Manifest,
  command: RecordedCommand<S>,
): z.output<S> {
  if (kind !== command.kind)
    throw new RunError(
      `${folder} was made by pawl ${kind}: expected a run of pawl ${command.kind.replace("-", " ")}`,
    );
  const read = parseRecorded(command.schema(config), config, command.history ?? []);
  if ("config" in read) return read.config;
  throw new RunError(
    `${folder} was recorded by pawl ${versions.pawl ?? "of an unknown version"} with settings that this version does not take: ${read.reasons.join("; ")}. Read it with that version.`,
  );
}

/** The kind of environment that recorded settings are about. */
export const kindOf = ({ env }: SettingsTree) =>
  findEnvKind(String((env as { name?: unknown } | undefined)?.name));

/** Settings that every kind of training run has, and that have been renamed. */
export const RENAMED_ENGINE = [{ path: "engine.name", renamed: "engine.address" }] as const;
const AGGREGATIONS = { tokens: "token-mean", paper: "group-mean" };
const RENAMED_OBJECTIVE = [
  { path: "objective.normaliser", renamed: "objective.aggregation", values: AGGREGATIONS },
] as const;
/** Prompts used to be encoded piece by piece, and only the compact style learned to end them. */
const PROMPT_TOKENS = [
  {
    path: "prompt.observationEnd",
    before: ({ prompt }: SettingsTree) =>
      !["full", "chat"].includes(String((prompt as SettingsTree).style)),
  },
  { path: "prompt.tokens", before: "pieces" },
] as const;

/** Evaluations used to take the first tasks of a split. */
const FIRST_TASKS = { path: "evaluation.shuffle", before: false } as const;

/** How the settings that a model acts with have changed. */
const ACTING_HISTORY = [...PROMPT_TOKENS, FIRST_TASKS, ...RENAMED_ENGINE] as const;

/** How the settings that all training of a policy shares have changed. */
export const SHARED_HISTORY = [...ACTING_HISTORY, ...RENAMED_OBJECTIVE] as const;

/** What PaW could do beyond the paper. Where it was on, an update has other numbers than today. */
const REMOVED_PAW = (
  [
    ["skipWithoutSignal", "off", "74aad12"],
    ["dedupe", false, "74aad12"],
    ["horizon", 1, "74aad12"],
    ["gradientCap", undefined, "74aad12"],
    ["gradientLength", undefined, "74aad12"],
    ["counterfactual", 0, "fd8def35"],
  ] as const
).map(([name, off, last]) => ({
  path: `paw.${name}`,
  gone: (value: unknown, { paw }: SettingsTree) =>
    value === undefined || value === off || (paw as SettingsTree).loss === "off",
  last,
}));

const TRAIN = {
  kind: "train",
  schema: (config: SettingsTree) => trainConfig(kindOf(config)),
  history: [
    // Gradients used to be measured on some sequences of every update: those numbers stay,
    // unchecked.
    { path: "gradientSample", gone: true },
    { path: "gradients", before: { every: 0 } },
    // PPO's critic used to be a head on the policy.
    { path: "critic", before: { weights: "shared" } },
    ...SHARED_HISTORY,
    { path: "patience", renamed: "invalidActionLimit" },
    ...REMOVED_PAW,
    { path: "paw.horizonDiscount", gone: true },
    { path: "paw.gradientLengthShare", gone: true },
    { path: "paw.balance", renamed: "paw.lambda" },
    { path: "paw.normaliser", renamed: "paw.aggregation", values: AGGREGATIONS },
    // Actions and observations used to share one mean.
    {
      path: "warmStart.sft.mean",
      before: (settings: SettingsTree) =>
        valueAt(settings, ["warmStart", "sft", "observationWeight"]) === 0 ? undefined : "together",
    },
    {
      path: "warmStart.emphasis",
      gone: (value: unknown) =>
        ((value as { readonly types?: readonly string[] } | undefined)?.types ?? []).length === 0,
      last: "bcd6b61",
    },
    { path: "warmStart.sft.strays", renamed: "warmStart.sft.randomActions" },
  ],
} as const;
/** A notice that a run has settings with older names, if it does. */
export function olderNamesNotice(run: string): string | undefined {
  const { kind, config } = readManifest(run);
  const history = trainingKinds.includes(kind) ? TRAIN.history : RENAMED_ENGINE;
  const names = olderNames(config, history);
  return names.length === 0
    ? undefined
    : `${run} was recorded with settings that have been renamed since: ${names.join(", ")}`;
}

/**
 * A notice about a run whose corrections may have begun without the goal: one recorded before `evaluation.shuffle`
 * existed, which such runs have as false.
 */
export function correctionsNotice(run: string): string | undefined {
  const { config } = readManifest(run);
  const hasCorrections = Number(valueAt(config, ["corrections", "episodes"]) ?? 0) > 0;
  if (!hasCorrections || valueAt(config, ["evaluation", "shuffle"]) === true) return undefined;
  return `${run} was recorded by a version whose corrections did not show the goal where the learner took the first step; this version's do`;
}

/** The settings of a run of `pawl train`, under their current names. */
export function trainConfigOf(run: string): TrainConfig {
  return recordedConfig(run, sealedManifest(run), TRAIN);
}

/** Settings of `pawl train` that were recorded elsewhere than in a run. */
export function readTrainConfig(
  recorded: SettingsTree,
): { readonly config: TrainConfig } | Unreadable {
  return parseRecorded(TRAIN.schema(recorded), recorded, TRAIN.history);
}

/** The settings for acting that every kind of training run has. */
export type ActingConfig = Pick<
  TrainConfig,
  "env" | "prompt" | "stepLimit" | "maxTokens" | "evaluation" | "engine"
>;

/** The kinds of runs that train a policy. */
const trainingKinds = ["train", "rwml"];

/** The settings that a run's model acts with; other kinds of runs have none. What was about learning is not read. */
export function actingConfigOf(run: string): ActingConfig | undefined {
  const { kind } = readManifest(run);
  if (!trainingKinds.includes(kind)) return undefined;
  const schema = (config: SettingsTree) => {
    const { env, prompt, stepLimit, maxTokens, evaluation, engine } = trainConfig(
      kindOf(config),
    ).shape;
    return z.object({ env, prompt, stepLimit, maxTokens, evaluation, engine });
  };
  return recordedConfig(run, sealedManifest(run), { kind, schema, history: ACTING_HISTORY });
}

/**
 * The settings in effect at each update of a training run: what later resumes changed is reverted.
 */
export function trainConfigsOf(run: string): (update: number) => TrainConfig {
  const manifest = sealedManifest(run);
  const resumes = manifest.resumes ?? [];
  const known = new Map<number, TrainConfig>();
  return (update) => {
    const before = resumes.filter((resume) => resume.update <= update).length;
    const config =
      known.get(before) ??
      recordedConfig(run, { ...manifest, config: configBefore(manifest, before) }, TRAIN);
    known.set(before, config);
    return config;
  };
}

/** The recorded settings as they were after this many resumes. */
function configBefore({ config, resumes = [] }: Manifest, count: number): SettingsTree {
  let settings: SettingsTree = config;
  for (const { changed } of resumes.slice(count).reverse())
    for (const [path, { from }] of Object.entries(changed))
      settings = withValueAt(settings, path.split("."), from);
  return settings;
}
