/** The critic that a run trained beside its policy, to be asked for values. */
import { join } from "node:path";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { type Critic, hasOwnCritic } from "@pawl/core/train/critic.js";
import { engineFor } from "./engines.js";
import { openCritic } from "./open-critic.js";
import { openModel } from "./open-model.js";
import { trainConfigOf } from "./recorded-config.js";
import { REFERENCE, TOKENIZER } from "./saved-model.js";

/** Opens the critic of a run's checkpoint, with the engine of the run; the caller disposes of it. */
export async function openSavedCritic(
  run: string,
  checkpoint: string,
): Promise<Pick<Critic, "values" | "dispose">> {
  const config = trainConfigOf(run);
  const engine = engineFor(config.engine);
  if (!hasOwnCritic(config, checkpoint)) {
    const start = { folder: checkpoint, tokenizer: join(run, TOKENIZER) };
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
    { folder: join(run, REFERENCE) },
    maxReturn,
  );
  try {
    await critic.load(checkpoint);
    return critic;
  } catch (error) {
    await critic.dispose();
    throw error;
  }
}
