/**
 * What a folder of a comparison is for. Another comparison in the same folder is refused, setting by
 * setting; seeds and arms belong to folders of their own, so that more can be added at any time.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { Unreadable } from "@pawl/core/config/recorded.js";
import { flagOf } from "@pawl/core/config/settings.js";
import { differences, type SettingsTree, withValueAt } from "@pawl/core/config/settings-tree.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { isRemote } from "@pawl/training/engines.js";
import { readTrainConfig } from "@pawl/training/recorded-config.js";
import { readRwmlConfig } from "@pawl/worldmodel/rwml/config.js";
import { type EvaluationSize, readResult } from "./result-file.js";

/** A folder, the settings it is for, and how its model is evaluated. */
export interface Claim {
  readonly folder: string;
  /** Settings of training, and of RWML where that comes first. */
  readonly settings: SettingsTree;
  readonly evaluation: EvaluationSize;
  /** Where the command has the settings of training: below `train`, or at the top. */
  readonly place?: readonly string[];
}

const FILE = "job.json";

/** Refuses a folder that was started with other settings, or evaluated in another way. */
export function checkClaim({ folder, settings, evaluation, place = ["train"] }: Claim): void {
  const path = join(folder, FILE);
  if (existsSync(path)) {
    const recorded = JSON.parse(readRegularText(path)) as SettingsTree;
    const others = differences(comparable(asRecorded(recorded, path)), comparable(settings));
    if (others.length > 0)
      throw new ConfigError(
        `${folder} was started with other settings (${path}): ${others
          .map(
            ({ path: at, from, to }) =>
              `${flagOf([...place, ...at])} was ${show(from)}, now ${show(to)}`,
          )
          .join("; ")}. Leave them as they were, choose another --out, or remove that folder.`,
      );
  }
  const before = readResult(folder)?.evaluation;
  if (
    before !== undefined &&
    (before.tasks !== evaluation.tasks || before.rounds !== evaluation.rounds)
  )
    throw new ConfigError(
      `${folder} was evaluated with --eval-tasks ${before.tasks} --eval-rounds ${before.rounds}, not ${evaluation.tasks} and ${evaluation.rounds}: give those, or remove its result.json to evaluate it again`,
    );
}

/** Records what the folder is for. */
export function claim({ folder, settings }: Pick<Claim, "folder" | "settings">): void {
  const path = join(folder, FILE);
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) writeSmallFile(path, `${JSON.stringify(plain(settings), undefined, 2)}\n`);
}

/**
 * The settings that a folder was claimed for, as recorded if this version does not take them;
 * undefined if there is no record.
 */
export function claimedSettings(folder: string): SettingsTree | undefined {
  const path = join(folder, FILE);
  if (!existsSync(path)) return undefined;
  const recorded = JSON.parse(readRegularText(path)) as SettingsTree;
  const read = upgraded(recorded);
  return comparable("config" in read ? read.config : recorded);
}

/** An older version's record, with the settings that have been added since. */
function asRecorded(recorded: SettingsTree, path: string): SettingsTree {
  const read = upgraded(recorded);
  if ("config" in read) return read.config;
  throw new ConfigError(
    `${path} has settings that this version does not take: ${read.reasons.join("; ")}. Choose another --out.`,
  );
}

function upgraded({ rwml, ...train }: SettingsTree): { config: SettingsTree } | Unreadable {
  const read = readTrainConfig(train);
  if (rwml === undefined || !("config" in read)) return read;
  const before = readRwmlConfig(rwml as SettingsTree);
  return "config" in before ? { config: { ...read.config, rwml: before.config } } : before;
}

/** Which server computes, and where its start is on this machine, makes no difference. */
function comparable(settings: SettingsTree): SettingsTree {
  const tree = plain(settings);
  const engine = tree.engine as { readonly address: string };
  if (!isRemote(engine)) return tree;
  const anyServer = { ...engine, address: "a server", threads: undefined, model: undefined };
  return withValueAt(tree, ["engine"], plain(anyServer));
}

const plain = (tree: SettingsTree): SettingsTree =>
  JSON.parse(JSON.stringify(tree)) as SettingsTree;

/** A setting's value in a message. */
export const show = (value: unknown): string =>
  value === undefined ? "not set" : JSON.stringify(value);
