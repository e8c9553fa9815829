/** What docs/results/plan-regime.md fixes before the second lease: settings, candidates, and the rules for choosing. */

/** A way to learn from so many demonstrations. */
export interface Candidate {
  readonly demonstrations: number;
  readonly learningRate: number;
  readonly penaltyPlace: "inside" | "after";
}

export const CANDIDATES: Readonly<Record<string, Candidate>> = {
  "25-slow": { demonstrations: 25, learningRate: 1e-5, penaltyPlace: "after" },
  "25-fast": { demonstrations: 25, learningRate: 3e-5, penaltyPlace: "after" },
  "50-slow": { demonstrations: 50, learningRate: 1e-5, penaltyPlace: "after" },
  "50-fast": { demonstrations: 50, learningRate: 3e-5, penaltyPlace: "after" },
  "25-inside": { demonstrations: 25, learningRate: 1e-5, penaltyPlace: "inside" },
};

export const CANDIDATE_SEED = 100;
/** Updates of a candidate at most, and the updates that pairs should have. */
export const [CANDIDATE_UPDATES, PAIR_UPDATES] = [9, 15];
/** Points of success in training that count as learning. */
const GAIN = 0.05;
const EVALUATED_STEPS = 30;
export const EVALUATION = { stepLimit: EVALUATED_STEPS, temperature: 0.4, rounds: 3 };
/** Updates after which all runs are compared: those that the first pairs had. */
export const COMPARED_AFTER = 24;

/** What all runs share. */
const COMMON = {
  env: { name: "alfworld", order: 0 },
  prompt: { style: "full", history: 2, lowerCase: true, observationEnd: false },
  groups: 8,
  groupSize: 8,
  stepLimit: 20,
  maxTokens: 80,
  temperature: 1,
  minibatch: 256,
  objective: { kl: 0.01, entropy: 0.001 },
  evaluation: { every: 0 },
};

/** Imitation of the expert's recorded episodes, with a thought before each action. */
export const startSettings = (demonstrations: number, teacher: string) => ({
  ...COMMON,
  model: { start: "served" },
  warmStart: {
    episodes: demonstrations,
    runs: [teacher],
    sft: {
      epochs: 3,
      batch: 4,
      observationWeight: 0,
      optimizer: { learningRate: 5e-4, schedule: "cosine", warmup: 4 },
    },
  },
  paw: { loss: "off" },
  updates: 0,
  seed: CANDIDATE_SEED,
});

/** What RL adds to the policy's loss; `shuffled` is PaW with what followed other transitions. */
export const ARMS = {
  plain: { loss: "off" },
  paw: { alpha: 0.75, rho: 0.2, loss: "cmae", lambda: "adaptive" },
  shuffled: { alpha: 0.75, rho: 0.2, loss: "cmae", lambda: "adaptive", targets: "shuffled" },
} as const;
export type Arm = keyof typeof ARMS;

/** RL from a start, as a candidate says. */
export const rlSettings = (
  start: string,
  { learningRate, penaltyPlace }: Candidate,
  arm: Arm,
  length: { readonly seed: number; readonly updates: number },
) => ({
  ...COMMON,
  model: { start },
  advantage: { name: "grpo", penalty: 0.1, penaltyOn: "invalid", penaltyPlace },
  paw: ARMS[arm],
  ...(arm !== "plain" && { gradients: { every: 0 } }),
  optimizer: { learningRate, warmup: 0, weightDecay: 0.01, gradClipNorm: 1 },
  checkpointEvery: 1,
  keep: length.updates,
  ...length,
});

/** Success in training and KL to the start, update by update. */
export interface Curve {
  readonly success: readonly number[];
  readonly kl: readonly number[];
}

/** What the choice is made by. */
export interface Standing {
  readonly gain: number;
  readonly last: number;
  readonly kl: number;
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Where each candidate stands over the updates that all have. */
export function standingsOf(curves: Readonly<Record<string, Curve>>): {
  readonly updates: number;
  readonly standings: Readonly<Record<string, Standing>>;
} {
  const updates = Math.min(...Object.values(curves).map(({ success }) => success.length));
  const part = updates < 6 ? Math.max(1, Math.floor(updates / 2)) : 3;
  const standings = Object.entries(curves).map(([name, curve]) => {
    const success = curve.success.slice(0, updates);
    const last = mean(success.slice(-part));
    const kl = mean(curve.kl.slice(0, updates));
    return [name, { gain: last - mean(success.slice(0, part)), last, kl }] as const;
  });
  return { updates, standings: Object.fromEntries(standings) };
}

/** The plan's choice: the fewest demonstrations that learn, else the highest success at the end. */
export function choose(standings: Readonly<Record<string, Standing>>): string {
  const names = Object.keys(standings);
  const learns = names.filter((name) => standings[name]!.gain >= GAIN - 1e-9);
  const fewest = Math.min(...learns.map((name) => CANDIDATES[name]!.demonstrations));
  const left =
    learns.length > 0
      ? learns.filter((name) => CANDIDATES[name]!.demonstrations === fewest)
      : names;
  const by = learns.length > 0 ? "gain" : "last";
  const better = (a: string, b: string): number =>
    standings[b]![by] - standings[a]![by] || standings[a]!.kl - standings[b]!.kl;
  return [...left].sort(better)[0]!;
}

/**
 * Pairs to run at once: the most of four, three and two that get 15 updates in so many seconds, if an
 * update takes longer as more runs share the card.
 */
export function pairsThatFit(
  update: { readonly seconds: number; readonly runs: number },
  seconds: number,
): number {
  const takes = (pairs: number): number =>
    update.seconds * Math.max(1, (2 * pairs) / update.runs) * PAIR_UPDATES;
  return [4, 3].find((pairs) => takes(pairs) <= seconds) ?? 2;
}
