/**
 * A world small enough for tests: one room of the household, and a model of it that is never wrong.
 */
import { type Environment, isRemote } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import type { WorldModel } from "./model.js";
import { parseBehaviours, playBehaviours } from "./players.js";
import { createProblems, type Trajectory } from "./trajectory.js";

/** Command-line flags for this world. */
export const oneRoomFlags: readonly string[] = [
  ...["--env.rooms", "1", "--env.receptacles", "4", "--env.objects", "3"],
  ...["--env.families", "pick"],
];

/** One room, few things, one kind of task. */
export function oneRoom(): Environment {
  return openEnvironment({
    name: "household",
    rooms: 1,
    receptacles: 4,
    objects: 3,
    families: ["pick"],
  });
}

/** Trajectories of a mixture in that room. */
export function someTrajectories(
  mix: readonly string[] = ["expert:6", "epsilon=0.5:6"],
): Promise<readonly Trajectory[]> {
  return playBehaviours(
    {
      environment: oneRoom(),
      split: "train",
      behaviours: parseBehaviours(mix),
      stepLimit: 8,
      seed: 0,
    },
    createProblems(),
  );
}

/** Answers as the world does: finds the task by its first observation and repeats all actions. */
export function oracleModel(environment: Environment, split: string): WorldModel {
  const envs = new Map(
    environment
      .tasks(split)
      .slice(0, 40)
      .map((task) => {
        const env = environment.create();
        const first = env.reset(task) as string;
        return [`${env.goal}\n${first}\n${env.initialContext?.()}`, task] as const;
      }),
  );
  return {
    name: "oracle",
    predict: async (queries) =>
      queries.map(({ goal, firstObservation, context, turns, action }) => {
        const env = environment.create();
        const task = envs.get(`${goal}\n${firstObservation}\n${context}`)!;
        if (isRemote(env)) throw new Error("the oracle needs a world in this process");
        env.reset(task);
        for (const turn of turns) env.step(turn.action);
        const { observation, done, info } = env.step(action);
        return { observation, done, success: info.success };
      }),
  };
}
