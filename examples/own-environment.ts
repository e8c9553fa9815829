/** Your own environment: guess a number. Nothing more is needed to play, record or train in it. */
import * as pawl from "pawl";
import { z } from "zod";

const lists = pawl.taskLists("guess", { train: pawl.numberedTasks("train", 100, "guess") });

function createGuess(largest: number, start?: number): pawl.Env {
  let secret = start;
  return {
    goal: `Find the number from 1 to ${largest}.`,
    taskType: "guess",
    reset(task) {
      secret = 1 + pawl.createRandom(pawl.mixSeed(lists.task(task.id).id)).int(largest);
      return "No guess yet.";
    },
    step(action) {
      if (secret === undefined) throw new pawl.EnvError("guess: call reset(task) before step");
      const guess = Number(/^guess (\d+)$/.exec(action)?.[1]);
      const valid = guess >= 1 && guess <= largest;
      const success = guess === secret;
      const hint = success ? "Right!" : guess < secret ? "Higher." : "Lower.";
      const observation = valid ? hint : "Say: guess, and a number.";
      if (success) secret = undefined;
      return { observation, reward: success ? 1 : 0, done: success, info: { valid, success } };
    },
    admissibleActions: () => Array.from({ length: largest }, (_, i) => `guess ${i + 1}`).sort(),
    clone: () => createGuess(largest, secret),
  };
}

export const guess = pawl.defineEnv({
  name: "guess",
  summary: "find a number by guessing",
  options: z.strictObject({ largest: z.int().min(2).default(20).describe("the largest number") }),
  open: ({ largest }) => ({
    ...lists,
    name: "guess",
    stepLimit: 10,
    maxReturn: 1,
    prompt: { instructions: "You guess a number. Say for example: guess 7." },
    create: () => createGuess(largest),
  }),
});

export default pawl.definePlugin({ environments: [guess] });
