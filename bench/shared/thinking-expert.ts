/**
 * A plugin: the expert of a household world, with a thought before each action that its own plan
 * gives (docs/results/regime.md). The sentences are templates; nobody thought them.
 *
 *   pawl rollout --env alfworld --plugin bench/shared/thinking-expert.ts --policy thinking …
 */
import { definePlugin, type Env, type PolicyKind } from "pawl";
import { z } from "zod";

/** What only leads to the next thing to do. */
const ON_THE_WAY = /^(go to|open|close|look|examine|inventory)\b/;
const MOST_STEPS = 10;

/** A thought: what the next thing to do on the plan is about, and how the action serves it. */
export function thoughtOf(goal: string, action: string, aim: string): string {
  const task = goal.replace(/[.\s]+$/, "");
  const taken = /^take (.+?) \d+ from /.exec(aim)?.[1];
  if (taken !== undefined)
    return action === aim
      ? `The task: ${task}. I see a ${taken}, which I need, so I ${action}.`
      : `The task: ${task}. I do not have a ${taken} yet. To find one, I ${action}.`;
  return action === aim
    ? `The task: ${task}. I can do the next part here: ${action}.`
    : `The task: ${task}. Next I have to ${aim}. So I ${action}.`;
}

const thinking: PolicyKind = {
  name: "thinking",
  options: z.strictObject({}),
  create: (_, { environment: { expert, name }, style }) => ({
    name: "thinking",
    batch: 1,
    act: async (situations) =>
      situations.map(({ env, goal }) => {
        if (expert === undefined || !("clone" in env) || env.clone === undefined)
          throw new Error(
            `policy thinking: ${name} has no expert, or its episodes cannot be copied`,
          );
        const action = expert(env);
        const copy = env.clone() as Env;
        let aim = action;
        for (let step = 0; step < MOST_STEPS && ON_THE_WAY.test(aim); step++) {
          copy.step(aim);
          aim = expert(copy);
        }
        return { response: style.format(action, thoughtOf(goal, action, aim)) };
      }),
  }),
};

// biome-ignore lint/style/noDefaultExport: what a plugin is.
export default definePlugin({ policies: [thinking] });
