import { ConfigError } from "@pawl/core/config/config-error.js";
import { checkStep } from "@pawl/core/envs/bounded-env.js";
import type { Env, Environment } from "@pawl/core/envs/env.js";
import { refuseIsolated } from "@pawl/core/envs/isolated-environment.js";
import { DEFAULT_LIMITS } from "@pawl/core/envs/limits.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { createRandom } from "@pawl/core/random.js";
import { z } from "zod";
import { type Asker, createAsker } from "./asker.js";
import { defineCommand, exitCodes } from "./command.js";
import { envOptions } from "./env-options.js";
import { type Io, print } from "./io.js";

const HELP = [
  "Type an action as the world lists it, or one of these commands:",
  "  ?        list the admissible actions",
  "  hint     show what the expert would do",
  "  undo     take back the last action",
  "  goal     show the goal again",
  "  quit     stop playing",
].join("\n");

/** `pawl play`: a person plays an environment. */
export const play = defineCommand({
  name: "play",
  summary: "play an environment yourself",
  worlds: "named",
  details: HELP,
  options: (peek) =>
    z.strictObject({
      env: envOptions(peek),
      split: z.string().optional().describe("split to take the task from (default: the first one)"),
      task: z
        .string()
        .optional()
        .describe("task to play, such as train/17 (default: a random one)"),
      seed: z
        .int()
        .optional()
        .describe("random seed for task selection and noise (default: from the clock)"),
    }),
  examples: [
    ["pawl play", "a random household task"],
    ["pawl play --env household --task valid_unseen/3", "a specific one"],
  ],
  async run({ config, io, signal }) {
    const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
    const seed = config.seed ?? Date.now() % 2 ** 31;
    const task =
      config.task === undefined
        ? createRandom(seed).pick(environment.tasks(config.split ?? environment.splits[0]!))
        : environment.task(config.task);
    refuseIsolated(environment, "pawl play");
    const env = environment.create();
    if ("close" in env)
      throw new ConfigError(
        `${environment.name} runs behind a server: play it with pawl rollout --policy human`,
      );
    print(
      io,
      io.colors.dim(
        `${environment.name} ${task.id} (${task.type}); ? lists what you can do, quit stops`,
      ),
    );
    const observation = env.reset(task, seed);
    print(io, `${io.colors.bold(env.goal)}\n\n${observation}`);
    const asker = createAsker(io);
    try {
      return await playEpisode(environment, env, asker, io, signal);
    } finally {
      asker.close();
    }
  },
});

async function playEpisode(
  environment: Environment,
  start: Env,
  asker: Asker,
  io: Io,
  signal: AbortSignal,
): Promise<number> {
  const { bold, dim, green, red } = io.colors;
  let env = start;
  const past: Env[] = [];
  let total = 0;
  const words: Readonly<Record<string, () => void>> = {
    "?": () =>
      print(io, env.admissibleActions?.().join("\n") ?? "This world does not list its actions."),
    hint: () =>
      print(
        io,
        environment.expert === undefined
          ? "This world has no expert to ask: ? lists what you can do."
          : dim(`> ${environment.expert(env)}`),
      ),
    goal: () => print(io, bold(env.goal)),
    help: () => print(io, HELP),
    undo() {
      const before = past.pop();
      if (before === undefined) return print(io, "There is nothing to take back.");
      env = before;
      print(io, dim("Taken back."));
    },
  };
  while (past.length < environment.stepLimit) {
    const action = await asker.ask(
      `${dim(`${past.length + 1}>`)} `,
      () => [...(env.admissibleActions?.() ?? []), ...Object.keys(words), "quit"],
      signal,
    );
    if (action === undefined || action === "quit") {
      print(io, dim("Stopped."));
      return exitCodes.done;
    }
    if (action === "") continue;
    if (words[action] !== undefined) {
      words[action]();
      continue;
    }
    past.push(env.clone());
    const result = checkStep(env.step(action), environment.limits ?? DEFAULT_LIMITS);
    total += result.reward;
    print(io, result.info.valid ? result.observation : red(result.observation));
    if (result.done) {
      print(
        io,
        result.info.success
          ? green(bold(`Solved in ${past.length} steps, return ${total}.`))
          : red(bold(`Over after ${past.length} steps.`)),
      );
      return exitCodes.done;
    }
  }
  print(io, red(bold(`Out of steps: the limit is ${environment.stepLimit}.`)));
  return exitCodes.done;
}
