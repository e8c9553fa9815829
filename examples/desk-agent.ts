/**
 * The desk as an agent of the AI SDK that is trained: a program between the model and the world, with
 * the same rewards as the environment `desk`.
 *
 *     npx pawl train --agent examples/desk-agent.ts --model.start MODEL
 */
import { ToolLoopAgent } from "ai";
import * as pawl from "pawl";

const desk = pawl.openEnvironment({ name: "desk", level: "easy" });
const ids = (split: string, count: number) =>
  desk
    .tasks(split)
    .slice(0, count)
    .map(({ id, type }) => ({ id, type }));

export default pawl.defineAgent({
  name: "desk-agent",
  tasks: { train: ids("train", 200), test: ids("valid_seen", 50) },
  callLimit: desk.stepLimit,
  maxReturn: desk.maxReturn,
  async run({ id }, model, abortSignal) {
    const env = desk.create() as pawl.Env;
    const observation = env.reset(desk.task(id));
    const episode = pawl.toolSet(env);
    const clerk = new ToolLoopAgent({
      model,
      instructions: desk.prompt!.instructions!,
      tools: episode.tools,
      stopWhen: () => episode.done,
    });
    await clerk.generate({ prompt: `${env.goal}\n\n${observation}`, abortSignal });
    return episode.steps.reduce((sum, { reward }) => sum + reward, 0);
  },
  reward: ({ result }) => Number(result),
});
