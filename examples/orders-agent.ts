/**
 * A clerk who takes orders, as an agent of the AI SDK with two tools and an answer that has a schema:
 * what docs/results/agent.md trains.
 *
 *     npx pawl train --agent examples/orders-agent.ts --model.start MODEL
 */
import { Output, stepCountIs, ToolLoopAgent, tool } from "ai";
import { defineAgent } from "pawl";
import { z } from "zod";

/** Goods and ways to order them. No split has those of another. */
const WORDS = {
  train: {
    goods: [
      ...["apple", "basket", "bell", "belt", "blanket", "book", "bottle", "bowl", "box", "broom"],
      ...["brush", "bucket", "candle", "carpet", "chair", "clock", "coat", "comb", "cup", "desk"],
      ...["door", "drum", "fan", "flag", "fork", "glass", "glove", "guitar", "hammer", "hat"],
    ],
    orders: [
      (n: number, item: string, other: string) => `I have a ${other}. Send me ${n} of the ${item}.`,
      (n: number, item: string, other: string) => `No ${other} today: ${n} of the ${item}, please.`,
      (n: number, item: string, other: string) =>
        `My ${other} is fine. I need ${n} of the ${item}.`,
    ],
  },
  valid: {
    goods: ["jacket", "jar", "kettle", "key", "knife", "ladder", "lamp", "lock", "map", "mirror"],
    orders: [
      (n: number, item: string, other: string) => `The ${other} can wait. ${n} of the ${item} now.`,
      (n: number, item: string, other: string) =>
        `Is the ${other} sold? I want ${n} of the ${item}.`,
    ],
  },
  test: {
    goods: ["mug", "nail", "oven", "paddle", "pen", "pillow", "plate", "purse", "rope", "rug"],
    orders: [
      (n: number, item: string, other: string) =>
        `Keep the ${other}. I would take ${n} of the ${item}.`,
      (n: number, item: string, other: string) =>
        `I saw a ${other}, but order ${n} of the ${item}.`,
    ],
  },
} as const;

export interface Order {
  readonly type: "sold" | "refused";
  readonly text: string;
  readonly item: string;
  readonly quantity: number;
  /** What is in the shop. */
  readonly goods: Readonly<Record<string, { readonly price: number; readonly stock: number }>>;
}

/** Orders that follow from the seed; half of them are for what is sold out. */
function orders(split: keyof typeof WORDS, count: number, seed: number): readonly Order[] {
  let state = seed;
  const below = (end: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
  const { goods, orders: texts } = WORDS[split];
  return Array.from({ length: count }, (_, i) => {
    const at = below(goods.length);
    const item = goods[at]!;
    const other = goods[(at + 1 + below(goods.length - 1)) % goods.length]!;
    const isSold = i % 2 === 0;
    const quantity = 2 + below(8);
    const stock = isSold ? 10 + below(90) : 0;
    return {
      type: isSold ? "sold" : "refused",
      text: texts[below(texts.length)]!(quantity, item, other),
      ...{ item, quantity },
      goods: {
        [item]: { price: 2 + below(98), stock },
        [other]: { price: 2 + below(98), stock: below(2) * (10 + below(90)) },
      },
    };
  });
}

const answer = z.object({ sold: z.boolean(), total: z.int() });

/** What the clerk should answer. */
export function rightAnswer({ type, item, quantity, goods }: Order): z.output<typeof answer> {
  return type === "sold"
    ? { sold: true, total: quantity * goods[item]!.price }
    : { sold: false, total: 0 };
}

export default defineAgent<Order>({
  name: "orders",
  tasks: {
    train: orders("train", 1024, 1),
    valid: orders("valid", 128, 2),
    test: orders("test", 128, 3),
  },
  callLimit: 4,
  async run({ text, goods }, model, abortSignal) {
    const clerk = new ToolLoopAgent({
      model,
      instructions:
        "Find what is ordered. If it is in stock, multiply quantity and price for the total. Otherwise it is not sold, and the total is 0.",
      tools: {
        find: tool({
          description: "Price and stock.",
          inputSchema: z.object({ item: z.string() }),
          execute: async ({ item }) => goods[item] ?? "unknown",
        }),
        multiply: tool({
          description: "a × b.",
          inputSchema: z.object({ a: z.number(), b: z.number() }),
          execute: async ({ a, b }) => a * b,
        }),
      },
      output: Output.object({ schema: answer }),
      stopWhen: stepCountIs(4),
    });
    const { output } = await clerk.generate({ prompt: text, abortSignal });
    return output;
  },
  reward({ task, result }) {
    const right = rightAnswer(task);
    const { sold, total } = result as z.output<typeof answer>;
    if (sold !== right.sold) return { reward: 0, why: sold ? "sold what is not there" : "refused" };
    if (total !== right.total) return { reward: 0, why: `the total is ${right.total}` };
    return { reward: 1, why: "right" };
  },
});
