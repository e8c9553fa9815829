/**
 * What RWML made the model forget: how far weights moved, and the loss on old actions and states
 * now.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { latestCheckpoint } from "../runs/checkpoints.js";
import type { MetricsLine } from "../runs/metrics-file.js";
import { writeSmallFile } from "../runs/small-file.js";
import { type EngineOptions, isRemote } from "../train/engines.js";
import { REFERENCE } from "../train/saved-model.js";
import type { RwmlConfig } from "./config.js";
import { type WeightChange, weightChange } from "./forgetting.js";
import { type HeldOutSetup, heldOutMetrics } from "./metrics.js";
import type { TripletData } from "./triplet-file.js";

/** The content of `forgetting.json` in the run folder. */
export interface ForgettingReport {
  /** |w − w₀| / |w₀| of all weights, and of each tensor; or why it could not be measured. */
  readonly weights: WeightChange | { readonly unmeasured: string };
  /** Held-out losses per token before and after. */
  readonly loss: Readonly<Record<string, { readonly before: number; readonly after: number }>>;
}

const FORGETTING = "forgetting.json";

/**
 * Why a run cannot say how far its weights moved; undefined if it can. Known once its start is
 * saved.
 */
export function unmeasuredWeights(folder: string, engine: EngineOptions): string | undefined {
  if (engine.loraRank > 0)
    return `low-rank adapters are trained (engine.loraRank ${engine.loraRank}), and the weights beneath them stay as they are`;
  const kept = !isRemote(engine) || engine.copy;
  if (kept && hasWeights(join(folder, REFERENCE))) return undefined;
  return engine.copy
    ? "the start's weights are on an engine server that sends no files"
    : "the weights stay on the engine server; engine.copy brings them here";
}

const hasWeights = (folder: string): boolean => existsSync(join(folder, "model.safetensors"));

/**
 * Measures what was forgotten between the start and now, writes it to disk, and returns a summary.
 */
export async function reportForgetting(
  setup: HeldOutSetup,
  data: TripletData,
  config: RwmlConfig,
  folder: string,
  unmeasured: string | undefined,
): Promise<MetricsLine> {
  const after = await heldOutMetrics(setup, data.heldOut, config);
  const reached = latestCheckpoint(folder)?.folder ?? join(folder, REFERENCE);
  const missing =
    unmeasured ?? (hasWeights(reached) ? undefined : `the weights of ${reached} are not here`);
  const weights =
    missing === undefined
      ? await weightChange(join(folder, REFERENCE), reached)
      : { unmeasured: missing };
  await setup.engine.load(join(folder, REFERENCE));
  const before = await heldOutMetrics(setup, data.heldOut, config);
  const loss = Object.fromEntries(
    Object.keys(after).flatMap((name) => {
      const kind = /^heldOut\.loss\.(.+)$/.exec(name)?.[1];
      return kind === undefined ? [] : [[kind, { before: before[name]!, after: after[name]! }]];
    }),
  );
  const content: ForgettingReport = { weights, loss };
  writeSmallFile(join(folder, FORGETTING), `${JSON.stringify(content, undefined, 2)}\n`);
  return {
    ...("all" in weights && { "weights.moved": weights.all }),
    ...Object.fromEntries(
      Object.entries(loss).map(([kind, { before: old, after: now }]) => [
        `heldOut.loss.${kind}.change`,
        now - old,
      ]),
    ),
    "heldOut.reward": after["heldOut.reward"]!,
    "heldOut.reward.before": before["heldOut.reward"]!,
  };
}
