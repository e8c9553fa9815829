/** A world that is acted in by calls of one tool, for tests. */
import { z } from "zod";
import type { Tool } from "../text/tool.js";
import { defineToolEnv } from "./define-env.js";
import { numberedTasks, taskLists } from "./task-lists.js";
import type { ToolEnv } from "./tool-env.js";

const lists = taskLists("guess", { train: numberedTasks("train", 20, "guess") });
const number = { type: "integer", minimum: 1, maximum: 5 };
/** Guesses a number. */
export const guessTool: Tool = {
  name: "guess",
  description: "Guess a number from 1 to 5.",
  parameters: { type: "object", properties: { number }, required: ["number"] },
};

interface GuessEnv extends ToolEnv {
  readonly secret: number;
}

function createGuess(tools: readonly Tool[], start = 0, startOver = true): GuessEnv {
  let [secret, over] = [start, startOver];
  return {
    goal: "Find the number.",
    taskType: "guess",
    get secret() {
      return secret;
    },
    tools: () => tools,
    reset(task) {
      [secret, over] = [1 + (Number(lists.task(task.id).id.split("/")[1]) % 5), false];
      return "No guess yet.";
    },
    step({ tool, arguments: { number: guessed } }) {
      if (over) throw new Error("the episode is over: call reset");
      over = guessed === secret;
      const observation = over
        ? "Right!"
        : `${tool}: ${Number(guessed) < secret ? "higher" : "lower"}`;
      return {
        observation,
        reward: over ? 1 : 0,
        done: over,
        info: { valid: true, success: over },
      };
    },
    admissibleActions: () =>
      over ? [] : [1, 2, 3, 4, 5].map((one) => ({ tool: "guess", arguments: { number: one } })),
    clone: () => createGuess(tools, secret, over),
  };
}

/** The kind of world that such a tool is called in. */
export const guessKind = (tools: readonly Tool[] = [guessTool]) =>
  defineToolEnv({
    name: "guess",
    summary: "find a number",
    options: z.strictObject({}),
    open: () => ({
      ...lists,
      name: "guess",
      stepLimit: 8,
      maxReturn: 1,
      create: () => createGuess(tools),
      expert: (env) => ({ tool: "guess", arguments: { number: (env as GuessEnv).secret } }),
    }),
  });
