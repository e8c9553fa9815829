/** The runs that `damage` damages: tiny ones of every command that trains and resumes. */
import { join, resolve } from "node:path";

/** A kind of run: how it is made, read and made longer. */
export interface RunToDamage {
  /** Makes the run in a folder of that name; another seed is another run with the same settings. */
  make(folder: string, name: string, seed: number): Promise<void>;
  resume(run: string): readonly string[];
  /** Episodes that an update records at once. */
  readonly appended: number;
  /** Whether `pawl replay` can recompute it. */
  readonly isReplayed: boolean;
}

const built = resolve("dist/src");

/** With a reference, evaluations and a best checkpoint, so that all of them matter. */
const SETTINGS = {
  updates: 3,
  checkpointEvery: 1,
  objective: { entropy: 0, kl: 0.1 },
  evaluation: { every: 1, tasks: 1, splits: ["valid_seen"] },
};

const trained = (more: object): RunToDamage => ({
  async make(folder, name, seed) {
    const { trainRun } = await import(join(built, "train/run.js"));
    const { tinyConfig } = await import(join(built, "train/testing.js"));
    await trainRun(tinyConfig({ ...SETTINGS, ...more, seed }), { folder: join(folder, name) });
  },
  resume: (run) => ["train", "--resume", run, "--updates", "4"],
  appended: 6,
  isReplayed: true,
});

const rwml: RunToDamage = {
  async make(folder, name, seed) {
    const { trainRun } = await import(join(built, "train/run.js"));
    const { tinyConfig } = await import(join(built, "train/testing.js"));
    const { rwmlRun } = await import(join(built, "train/rwml-run.js"));
    const { rwmlConfig } = await import(join(built, "train/rwml-config.js"));
    const { findEnvKind } = await import(join(built, "envs/registry.js"));
    const start = join(folder, `${name}-start`);
    const warmStart = {
      episodes: 48,
      sft: { epochs: 4, batch: 8, observationWeight: 1, optimizer: { learningRate: 3e-3 } },
    };
    await trainRun(tinyConfig({ updates: 0, warmStart, seed }), { folder: start });
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
    await rwmlRun(config, { folder: join(folder, name) });
  },
  resume: (run) => ["rwml", "--resume", run, "--updates", "4"],
  appended: 16,
  isReplayed: false,
};

const worldModel: RunToDamage = {
  async make(folder, name, seed) {
    const { someTrajectories } = await import(join(built, "worldmodel/testing.js"));
    const { writeDataSet } = await import(join(built, "worldmodel/dataset.js"));
    const { worldTrainConfig } = await import(join(built, "worldmodel/config.js"));
    const { trainWorldModel } = await import(join(built, "worldmodel/train.js"));
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
    await trainWorldModel(config, { folder: join(folder, name) });
  },
  resume: (run) => ["wm", "train", "--resume", run, "--epochs", "3"],
  appended: 0,
  isReplayed: false,
};

/** By the name that `--kind` takes. */
export const runsToDamage: Readonly<Record<string, RunToDamage>> = {
  train: trained({}),
  overlap: trained({ overlap: 1 }),
  rwml,
  wm: worldModel,
};
