/**
 * PaW on one page: a model from scratch learns to act, and to predict what its actions do.
 * src/train/rl.ts is this loop with what long runs need: minibatches, evaluation, checkpoints.
 */
import * as pawl from "pawl";

const house = { rooms: 1, receptacles: 3, objects: 2, families: ["look"] } as const;
const environment = pawl.openEnvironment({ name: "household", ...house });
const tasks = environment.tasks("train");
const style = pawl.promptStyle(environment.prompt, { style: "compact", history: "all" });

const tokenizer = pawl.buildTokenizer(await pawl.worldTexts(environment, style));
const { vocabularySize } = tokenizer;
const model = { preset: "tiny", vocabularySize, maxContext: 512 } as const;
const engine = await pawl.createEmbeddedEngine({ model, seed: 0 });

// A model that knows no words earns no reward to learn from, so it first imitates a teacher.
const teacher = pawl.expertPolicy(environment.seeker!);
const shown = { environment, style, policy: teacher, tasks: tasks.slice(-300), groupSize: 1 };
const lessons = (await pawl.rollout({ ...shown, seed: 0 })).flatMap((group) => group.episodes);
const imitation = { epochs: 2, batch: 8, optimizer: { learningRate: 2e-3 }, seed: 0 };
await pawl.sft(engine, lessons, { tokenizer, style }, imitation);

const policy = pawl.enginePolicy({ engine, tokenizer, style, sampling: { maxTokens: 10 } });
const paw = { loss: "mae", alpha: 0.75 } as const;
const objective = pawl.updateObjective({ kl: 0, entropy: 0 }, paw);

for (let update = 0; update < 10; update++) {
  // Eight tasks, eight attempts at each.
  const drawn = tasks.slice(8 * update, 8 * update + 8);
  const played = { environment, style, policy, tasks: drawn, groupSize: 8, stepLimit: 10 };
  const groups = await pawl.rollout({ ...played, seed: update });
  // How much better each action was than the other attempts (GRPO).
  const advantages = pawl.computeAdvantages(groups, { name: "grpo" });
  // Also predict what followed the most uncertain actions (PaW eq. 4, 10, 11).
  const { maxReturn } = environment;
  const { sequences } = pawl.prepareUpdate(groups, advantages, { paw, maxReturn });
  await engine.forwardBackward(sequences, objective);
  await engine.optimStep({ learningRate: 1e-3, gradClipNorm: 1 });

  const episodes = groups.flatMap((group) => group.episodes);
  const solved = episodes.filter((episode) => episode.success).length;
  console.log(`update ${update}: ${solved} of ${episodes.length} solved`);
}
await engine.dispose();
