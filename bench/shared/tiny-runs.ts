/** Tiny runs of every way to train, as command lines: for `damage`, `kills` and their tests. */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const built = resolve("dist/packages");
await import(join(built, "pawl/src/cli/all-worlds.js"));

/** A way to train. */
export interface TinyRun {
  /** Its words after `pawl`. */
  readonly command: readonly string[];
  /** Makes what it needs in a folder; returns the arguments of a new run, without `--out`. */
  prepare(folder: string, name: string, seed: number): Promise<readonly string[]>;
}

/** With a reference, evaluations and a best checkpoint, so that all of them matter. */
const SETTINGS = {
  updates: 3,
  checkpointEvery: 1,
  objective: { entropy: 0, kl: 0.1 },
  evaluation: { every: 1, tasks: 1, splits: ["valid_seen"] },
};

function configured(folder: string, name: string, config: unknown): readonly string[] {
  const path = join(folder, `${name}.json`);
  writeFileSync(path, JSON.stringify(config));
  return ["--config", path];
}

/** A run of `pawl train` with these settings beside the usual ones. */
export const trained = (more: object = {}): TinyRun => ({
  command: ["train"],
  async prepare(folder, name, seed) {
    const { tinyConfig } = await import(join(built, "training/src/testing.js"));
    return configured(folder, name, tinyConfig({ ...SETTINGS, ...more, seed }));
  },
});

/** Runs `pawl ARGS` in this process, and fails if it does. */
export async function pawlHere(args: readonly string[]): Promise<void> {
  const { runCli } = await import(join(built, "pawl/src/cli/testing.js"));
  const { code, stderr } = await runCli(args);
  if (code !== 0) throw new Error(`pawl ${args.join(" ")}: ${stderr}`);
}

const agent: TinyRun = {
  command: ["train"],
  async prepare(folder, name, seed) {
    const config = {
      model: { start: "tiny", maxContext: 384 },
      engine: { threads: 1 },
      ...{ updates: 3, groups: 2, groupSize: 2, maxTokens: 16, checkpointEvery: 1, seed },
      prompt: { style: "chat" },
      paw: { loss: "cmae" },
      gradients: { every: 0 },
      evaluation: { every: 1, tasks: 1, splits: ["test"] },
    };
    const file = resolve("bench/shared/tiny-agent.ts");
    return ["--agent", file, ...configured(folder, name, config)];
  },
};

const rwml: TinyRun = {
  command: ["rwml"],
  async prepare(folder, name, seed) {
    const { tinyConfig } = await import(join(built, "training/src/testing.js"));
    const { rwmlConfig } = await import(join(built, "worldmodel/src/rwml/config.js"));
    const { findEnvKind } = await import(join(built, "core/src/envs/registry.js"));
    const start = join(folder, `${name}-start`);
    const warmStart = {
      episodes: 48,
      sft: { epochs: 4, batch: 8, observationWeight: 1, optimizer: { learningRate: 3e-3 } },
    };
    const warm = configured(folder, `${name}-start`, tinyConfig({ updates: 0, warmStart, seed }));
    await pawlHere(["train", ...warm, "--out", start]);
    const { env, prompt, engine, stepLimit, maxTokens } = tinyConfig();
    const config = rwmlConfig(findEnvKind("household")).parse({
      ...{ env, prompt, engine, stepLimit, maxTokens, seed, ...SETTINGS },
      model: { start },
      collect: { episodes: 12, epsilon: 0.3 },
      filter: { share: 0.1, epochs: 1, batch: 4 },
      reward: { name: "rouge" },
      triplets: 4,
      groupSize: 4,
      predictionTokens: 16,
      minibatch: 16,
      heldOut: { share: 0.3, triplets: 6 },
    });
    return configured(folder, name, config);
  },
};

const worldModel: TinyRun = {
  command: ["wm", "train"],
  async prepare(folder, name, seed) {
    const { someTrajectories } = await import(join(built, "worldmodel/src/testing.js"));
    const { writeDataSet } = await import(join(built, "worldmodel/src/dataset.js"));
    const { worldTrainConfig } = await import(join(built, "worldmodel/src/config.js"));
    const data = join(folder, `${name}-data`);
    const [first, second, ...train] = await someTrajectories(["expert:8", "epsilon=0.5:4"]);
    writeDataSet(data, { train, test: [first, second] });
    const config = worldTrainConfig.parse({
      data: [data],
      model: { start: "tiny", maxContext: 192 },
      engine: { threads: 1 },
      epochs: 2,
      batch: 4,
      optimizer: { learningRate: 3e-3, warmup: 2, schedule: "constant" },
      evaluation: { every: 2, trajectories: 1 },
      checkpointEvery: 2,
      maxTokens: 24,
      seed,
    });
    return configured(folder, name, config);
  },
};

/** By name. */
export const tinyRuns = {
  train: trained(),
  chat: trained({
    prompt: { style: "chat" },
    model: { start: "tiny", maxContext: 320 },
    paw: { alpha: 1 },
  }),
  agent,
  overlap: trained({ overlap: 1 }),
  lora: trained({
    engine: {
      ...{ threads: 1, loraRank: 4, loraAlpha: 16 },
      loraTargets: ["q_proj", "v_proj", "down_proj"],
    },
  }),
  ppo: trained({ advantage: { name: "ppo" } }),
  rwml,
  wm: worldModel,
} as const satisfies Readonly<Record<string, TinyRun>>;
