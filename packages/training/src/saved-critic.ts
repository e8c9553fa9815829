/** The critic that a run trained beside its policy, to be asked for values. */
import { join } from "node:path";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { type Critic, hasCritic, hasOwnCritic } from "@pawl/core/train/critic.js";
import { engineFor } from "./engines.js";
import { openCritic } from "./open-critic.js";
import { openModel } from "./open-model.js";
import { trainConfigOf } from "./recorded-config.js";
import { REFERENCE, type SavedModel, TOKENIZER } from "./saved-model.js";

/** Whether a model was trained with a critic: what a run starts from was not. */
export function hasSavedCritic({ run, weights }: SavedModel): boolean {
  return (
    run !== undefined &&
    readManifest(run).kind === "train" &&
    weights !== join(run, REFERENCE) &&
    hasCritic(trainConfigOf(run))
  );
}

/** A critic that only values. */
export type SavedCritic = Pick<Critic, "values" | "dispose">;

/** Opens a model's critic, with the engine of its run; the caller disposes of it. */
export async function openSavedCritic({
  run,
  weights,
}: Pick<SavedModel, "run" | "weights">): Promise<SavedCritic> {
  const config = trainConfigOf(run!);
  const engine = engineFor(config.engine);
  if (!hasOwnCritic(config, weights)) {
    const start = { folder: weights, tokenizer: join(run!, TOKENIZER) };
    const model = await openModel({ start, engine, valueHead: true });
    return {
      dispose: () => model.engine.dispose(),
      async values(sequences) {
        const results = await model.engine.forward(sequences, { values: true });
        return results.map(({ values }) => values!);
      },
    };
  }
  const env = { ...config.env, name: String(config.env.name) };
  const environment = openEnvironment(env, { play: false });
  const { maxReturn } = environment;
  await environment.close?.();
  const critic = await openCritic(
    { ...config, engine },
    { folder: join(run!, REFERENCE) },
    maxReturn,
  );
  try {
    await critic.load(weights);
    return critic;
  } catch (error) {
    await critic.dispose();
    throw error;
  }
}
