/** Your own environment, acted in by tool calls: guess a number. */
import * as pawl from "pawl";
import { z } from "zod";

const lists = pawl.taskLists("guess-tool", { train: pawl.numberedTasks("train", 100, "guess") });

const tools: readonly pawl.Tool[] = [
  {
    name: "guess",
    description: "Guess the number. The answer says whether the number is higher or lower.",
    parameters: {
      type: "object",
      properties: { number: { type: "integer", minimum: 1, maximum: 20 } },
      required: ["number"],
    },
  },
];

interface GuessEnv extends pawl.ToolEnv {
  readonly secret: number;
}

function createGuess(start = 0): GuessEnv {
  let secret = start;
  return {
    goal: "Find the number from 1 to 20.",
    taskType: "guess",
    get secret() {
      return secret;
    },
    tools: () => tools,
    reset(task) {
      secret = 1 + pawl.createRandom(pawl.mixSeed(lists.task(task.id).id)).int(20);
      return "No guess yet.";
    },
    // The arguments have been checked against the schema.
    step({ arguments: { number } }) {
      const success = number === secret;
      const observation = success ? "Right!" : Number(number) < secret ? "Higher." : "Lower.";
      return {
        observation,
        reward: success ? 1 : 0,
        done: success,
        info: { valid: true, success },
      };
    },
    clone: () => createGuess(secret),
  };
}

export const guessTool = pawl.defineToolEnv({
  name: "guess-tool",
  summary: "find a number by calling a tool",
  options: z.strictObject({}),
  open: () => ({
    ...lists,
    name: "guess-tool",
    stepLimit: 10,
    maxReturn: 1,
    prompt: { instructions: "You find a hidden number with as few guesses as you can." },
    create: () => createGuess(),
    expert: (env) => ({ tool: "guess", arguments: { number: (env as GuessEnv).secret } }),
  }),
});
