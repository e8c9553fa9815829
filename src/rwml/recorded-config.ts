/** The settings that a run of `pawl rwml` was recorded with, read by the current schema. */
import { parseRecorded, type Unreadable } from "../config/recorded.js";
import type { SettingsTree } from "../config/settings-tree.js";
import { sealedManifest } from "../runs/manifest.js";
import { kindOf, recordedConfig, SHARED_HISTORY } from "../train/recorded-config.js";
import { type RwmlConfig, rwmlConfig } from "./config.js";

const schema = (config: SettingsTree) => rwmlConfig(kindOf(config));

/** Settings of `pawl rwml` that were recorded elsewhere than in a run. */
export function readRwmlConfig(
  recorded: SettingsTree,
): { readonly config: RwmlConfig } | Unreadable {
  return parseRecorded(schema(recorded), recorded, SHARED_HISTORY);
}

/** The settings of a run of `pawl rwml`, under their current names. */
export function rwmlConfigOf(run: string): RwmlConfig {
  const command = { kind: "rwml", schema, history: SHARED_HISTORY };
  return recordedConfig(run, sealedManifest(run), command);
}
