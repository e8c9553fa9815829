/** What `pawl env new` writes: a world that works, to be changed, and its test. */

/** The environment, as a plugin. */
export const starterPlugin = (name: string): string => `/**
 * ${name}: a world of your own. It works as it is: a number is to be found by guessing.
 *
 *   pawl env check ./${name}.ts                           does it keep the contract?
 *   pawl play --plugin ./${name}.ts --env ${name}
 *   pawl train --plugin ./${name}.ts --env ${name}
 */
import {
  createRandom,
  defineEnv,
  definePlugin,
  type Env,
  EnvError,
  mixSeed,
  numberedTasks,
  taskLists,
} from "pawl";
import { z } from "zod";

/** The tasks of each split: an id, and a type by which results are broken down. */
const lists = taskLists("${name}", {
  train: numberedTasks("train", 200, "guess"),
  valid: numberedTasks("valid", 50, "guess"),
});

/** The state of one episode. */
interface State {
  secret: number;
  /** What the hints so far leave over. */
  low: number;
  high: number;
  over: boolean;
}

/** A running world: one episode at a time. */
interface Guessing extends Env {
  readonly state: State;
}

function createWorld(largest: number, start?: State): Guessing {
  // Before the first reset the episode is over, so that step() can say what is missing.
  const state: State = { ...(start ?? { secret: 0, low: 1, high: largest, over: true }) };
  return {
    state,
    // What to do, in words, and the type of the current task.
    goal: \`Find the number from 1 to \${largest}.\`,
    taskType: "guess",

    // Starts a task and returns what is seen first. The same task and seed give the same episode.
    reset(task) {
      const { id } = lists.task(task.id);
      const secret = 1 + createRandom(mixSeed(id)).int(largest);
      Object.assign(state, { secret, low: 1, high: largest, over: false });
      return "No guess yet.";
    },

    // Carries out an action. One that cannot be carried out gets a reason, is flagged as invalid,
    // and changes nothing.
    step(action) {
      if (state.over) throw new EnvError("${name}: the episode is over; call reset(task) first");
      const guess = Number(/^guess (\\d+)$/.exec(action)?.[1]);
      const valid = guess >= 1 && guess <= largest;
      const success = guess === state.secret;
      if (valid && guess < state.secret) state.low = Math.max(state.low, guess + 1);
      if (valid && guess > state.secret) state.high = Math.min(state.high, guess - 1);
      state.over = success;
      const hint = success ? "Right!" : guess < state.secret ? "Higher." : "Lower.";
      return {
        observation: valid ? hint : "Say guess and a number.",
        reward: success ? 1 : 0,
        done: success,
        info: { valid, success },
      };
    },

    // Optional: what would be carried out now. Random play and models from scratch need it.
    admissibleActions: () =>
      state.over ? [] : Array.from({ length: largest }, (_, i) => \`guess \${i + 1}\`).sort(),

    // An exact copy that goes its own way, for undoing and for looking ahead.
    clone: () => createWorld(largest, state),
  };
}

/** The kind of environment: its name, its options, and how it is opened with them. */
export const ${camel(name)} = defineEnv({
  name: "${name}",
  summary: "find a number by guessing",
  options: z.strictObject({
    largest: z.int().min(2).default(8).describe("the largest number"),
  }),
  open: ({ largest }) => ({
    ...lists,
    name: "${name}",
    // Most steps of an episode, and the largest sum of its rewards.
    stepLimit: 6,
    maxReturn: 1,
    // Optional: what the policy is told about this world; pawl env prompt shows it.
    prompt: {
      instructions:
        "A number is hidden. You act with: guess NUMBER. After a guess you are told whether the number is higher or lower.",
    },
    create: () => createWorld(largest),
    // Optional: teachers. An expert may look at everything, a seeker knows only what has been
    // seen, so a model can imitate it. Without either, start from a model that can already act.
    seeker: (env: Env) => {
      const { low, high } = (env as Guessing).state;
      return \`guess \${Math.floor((low + high) / 2)}\`;
    },
  }),
});

export default definePlugin({ environments: [${camel(name)}] });
`;

/** Its test, for Node's own test runner. */
export const starterTest = (
  name: string,
): string => `// The contract that every environment keeps, as tests: node --test ${name}.test.mjs
// It needs this package beside it (npm install pawl); pawl env check ./${name}.ts does not.
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { envChecks, loadPlugin, openEnvironment } from "pawl";

await loadPlugin(fileURLToPath(new URL("./${name}.ts", import.meta.url)));

for (const check of envChecks(openEnvironment({ name: "${name}" }))) {
  test(check.name, () => check.run());
}

test("a world with other options, too", async () => {
  for (const check of envChecks(openEnvironment({ name: "${name}", largest: 20 }))) await check.run();
});
`;

/** `my-world` as the name of a constant. */
function camel(name: string): string {
  return name.replace(/-+([a-z0-9]?)/g, (_, next: string) => next.toUpperCase());
}
