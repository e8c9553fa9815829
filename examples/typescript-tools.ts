/**
 * Your own tools in TypeScript, as an environment: `tool()` of the AI SDK, tasks, and a reward.
 * `pawl train --plugin examples/typescript-tools.ts --env notes` trains in it.
 */
import * as pawl from "pawl";
import { z } from "zod";

interface Notes {
  readonly saved: string[];
}

const words = ["milk", "bread", "tea", "soap"];

export const notes = pawl.defineTools<Notes>({
  name: "notes",
  summary: "save a note by calling tools",
  instructions: "You keep notes by calling tools, and answer when you are done.",
  splits: {
    train: () =>
      words.map((word) => ({
        goal: `Save a note that says ${word}.`,
        word,
        answer: "saved",
        // A task may show how it is solved; a model from scratch imitates that first.
        solution: [{ tool: "save", arguments: { text: word } }],
      })),
  },
  stepLimit: 4,
  start: () => ({ saved: [] }),
  // These objects are what `tool({ … })` of the package `ai` gives.
  tools: ({ saved }) => ({
    save: {
      description: "Save a note.",
      inputSchema: z.object({ text: z.string().max(100) }),
      execute: ({ text }: { text: string }) => `saved as number ${saved.push(text)}`,
    },
    list: {
      description: "List the notes.",
      inputSchema: z.object({}),
      execute: () => saved,
    },
  }),
  reward: ({ task, state }) => (state.saved.join() === task.word ? 1 : 0),
  // With a copy of its state the world can be cloned. Leave it out if tools are asynchronous.
  clone: ({ saved }) => ({ saved: [...saved] }),
});

export default pawl.definePlugin({ environments: [notes] });
