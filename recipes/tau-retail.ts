/**
 * The default of `pawl train --env tau`: the laptop recipe adapted to τ²-bench's shop, on two cores.
 * It needs the benchmark's data folder (`TAU_DATA`) and plays with the scripted user.
 *
 * Answers of tools are long, so they are cut, and prompts hold the last two steps. A call names
 * ids that must be copied from what was seen: a model of this size learns the form of calls and of
 * answers, and we have not seen it solve tasks (docs/tau-bench.md).
 */
import { common } from "./laptop.js";

export const tauRetail = {
  ...common,
  env: { name: "tau", domain: "tau2-retail", limits: { observation: 1200 } },
  prompt: { style: "compact", history: 2 },
  model: { start: "tiny", maxContext: 2048 },
  warmStart: { ...common.warmStart, teacher: "expert", episodes: 400, epsilon: 0 },
  updates: 20,
  groups: 4,
  stepLimit: 20,
  maxTokens: 96,
  evaluation: { every: 10, splits: ["test"], tasks: 40, temperature: 0.4 },
};
