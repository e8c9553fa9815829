/**
 * Your own agent, built on the AI SDK: a clerk who looks up prices.
 *
 *     npx pawl train --agent examples/agent.ts --model.start MODEL
 */
import { stepCountIs, ToolLoopAgent, tool } from "ai";
import { defineAgent } from "pawl";
import { z } from "zod";

const prices: Readonly<Record<string, number>> = { mug: 4, lamp: 19, rug: 35, chair: 48, desk: 99 };

const price = tool({
  description: "The price of an item in euros.",
  inputSchema: z.object({ item: z.string() }),
  execute: async ({ item }) => prices[item] ?? `There is no ${item}.`,
});

const questions = (ask: (item: string) => string) =>
  Object.keys(prices).map((item) => ({ item, question: ask(item) }));

export default defineAgent({
  name: "clerk",
  tasks: {
    train: questions((item) => `What does the ${item} cost?`),
    test: questions((item) => `How much is one ${item}?`),
  },
  async run({ question }, model, abortSignal) {
    const clerk = new ToolLoopAgent({
      model,
      instructions: "You sell furniture. Look prices up, then answer in one sentence.",
      tools: { price },
      stopWhen: stepCountIs(4),
    });
    const { text } = await clerk.generate({ prompt: question, abortSignal });
    return text;
  },
  reward: ({ task, result }) => Number(String(result).includes(String(prices[task.item]))),
});
