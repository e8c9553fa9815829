/**
 * A cap on the world model's gradient, relative to the policy's (`paw.gradientCap`; beyond the
 * paper, off by default). Both are gradients of the whole update, measured at every update
 * (`gradients.ts`); the policy's is a running mean, because an update without signal has no policy
 * gradient:
 *
 *   g_u = 0.9·g_(u−1) + 0.1·‖∇ L_RL‖,   scale = min(1, cap·g_u / ‖∇ λ·L_WM‖),   λ_g ← scale·λ_g
 */
import { ConfigError } from "../config/config-error.js";
import type { GradientRelation } from "./gradients.js";

const DECAY = 0.9;

/** The cap's state after some updates. */
export interface GradientCap {
  /** The running norm of the policy's gradient; absent before the first measurement. */
  readonly running?: number;
  /** What λ is multiplied by in this update; absent without a cap. */
  readonly scale?: number;
}

/** The cap at the next update, given its measured gradients. */
export function nextGradientCap(
  cap: number | undefined,
  before: GradientCap,
  measured: Partial<GradientRelation> | undefined,
): GradientCap {
  const { running } = before;
  if (cap === undefined) return {};
  const { "gradient.policy": policy, "gradient.world": world } = measured ?? {};
  const now = Number.isFinite(policy) ? mean(running, policy!) : running;
  const scale = world! > 0 ? Math.min(1, (cap * (now ?? 0)) / world!) : 1;
  return { ...(now !== undefined && { running: now }), scale };
}

function mean(running: number | undefined, now: number): number {
  return running === undefined ? now : DECAY * running + (1 - DECAY) * now;
}

/** Rejects a cap if gradients are not measured at every update. */
export function checkGradientCap(config: {
  readonly paw: { readonly gradientCap?: number | undefined };
  readonly gradients: { readonly every: number };
}): void {
  const { every } = config.gradients;
  if (config.paw.gradientCap === undefined || every === 1) return;
  throw new ConfigError(
    `paw.gradientCap: needs the gradients of every update, but gradients.every is ${every}; set it to 1 (measuring takes about twice as long as learning), or leave the cap out`,
  );
}
