/**
 * Trajectories: what a world model learns from. An episode as a dialogue of actions and responses,
 * where a response is the observation and whether the goal was reached, (S_n, R_n) of
 * Word-to-World.
 */

import type { Episode } from "@pawl/core/rollout/episode.js";
import { z } from "zod";

/** Problems with single items of a large data set: each is named, and they are counted by kind. */

/** Counts problems by kind. */
export interface Problems {
  add(kind: string, where: string): void;
  /** The count of each kind. */
  readonly counts: ReadonlyMap<string, number>;
}

/** This many of each kind are reported one by one; the others are only counted. */
const LISTED = 3;

/** An empty count; `tell` is called with the first few of each kind. */
export function createProblems(tell: (message: string) => void = () => undefined): Problems {
  const counts = new Map<string, number>();
  return {
    counts,
    add(kind, where) {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      if (count <= LISTED) tell(`${where}: ${kind}; left out`);
      if (count === LISTED + 1) tell(`more of the same (${kind}) is counted and not listed`);
    },
  };
}

/** What a world answers to an action. */
export interface Outcome {
  readonly observation: string;
  /** Whether the episode is over. */
  readonly done: boolean;
  /** Whether the goal is reached. */
  readonly success: boolean;
}

/** An action and the world's response. */
export interface Turn extends Outcome {
  readonly action: string;
}

/** One episode, as a world model sees it. */
export interface Trajectory {
  /** The environment's name. */
  readonly env: string;
  /** The task's id, split and type. */
  readonly task: string;
  readonly split: string;
  readonly type: string;
  /** Who acted. */
  readonly policy: string;
  readonly goal: string;
  /** Facts of the initial state that only the world model is given. */
  readonly context?: string | undefined;
  readonly firstObservation: string;
  readonly turns: readonly Turn[];
}

const turnSchema = z.object({
  action: z.string(),
  observation: z.string(),
  done: z.boolean().default(false),
  success: z.boolean().default(false),
});

/** The form in which trajectories are stored. */
const trajectorySchema = z.object({
  env: z.string().min(1),
  task: z.string().min(1),
  split: z.string().default("train"),
  type: z.string().default("any"),
  policy: z.string().default("unknown"),
  goal: z.string(),
  context: z.string().optional(),
  firstObservation: z.string(),
  turns: z.array(turnSchema).min(1),
});

/**
 * The trajectory in a parsed record; if something is missing it is named, and the record left out.
 */
export function readTrajectory(
  record: unknown,
  where: string,
  problems: Problems,
): Trajectory | undefined {
  const parsed = trajectorySchema.safeParse(record);
  if (parsed.success) return parsed.data;
  problems.add(describe(parsed.error.issues[0]!), where);
  return undefined;
}

const stepSchema = z.object({
  action: z.string(),
  observation: z.string(),
  refused: z.literal(true).optional(),
});
const episodeSchema = z.object({
  task: z.object({ id: z.string(), split: z.string(), type: z.string() }),
  policy: z.string(),
  goal: z.string(),
  firstObservation: z.string(),
  initialContext: z.string().optional(),
  steps: z.array(stepSchema),
  success: z.boolean(),
  stop: z.string(),
  error: z.string().optional(),
});

/** A recorded episode as a trajectory; broken, empty and damaged ones are counted and left out. */
export function trajectoryOf(
  episode: Episode,
  env: string,
  where: string,
  problems: Problems,
): Trajectory | undefined {
  const parsed = episodeSchema.safeParse(episode);
  if (!parsed.success) {
    problems.add(describe(parsed.error.issues[0]!), where);
    return undefined;
  }
  const { task, policy, goal, firstObservation, initialContext, success, stop } = parsed.data;
  // What was refused never reached the world.
  const steps = parsed.data.steps.filter(({ refused }) => refused !== true);
  if (stop === "broken") {
    problems.add("the episode broke", `${where} (${parsed.data.error ?? "no reason given"})`);
    return undefined;
  }
  if (steps.length === 0) {
    problems.add("the episode has no steps", where);
    return undefined;
  }
  const last = steps.length - 1;
  return {
    env,
    task: task.id,
    split: task.split,
    type: task.type,
    policy,
    goal,
    ...(initialContext !== undefined && { context: initialContext }),
    firstObservation,
    turns: steps.map(({ action, observation }, i) => ({
      action,
      observation,
      done: i === last && stop === "done",
      success: i === last && success,
    })),
  };
}

/** Whether the goal was reached. */
export function succeeded({ turns }: Trajectory): boolean {
  return turns.some((turn) => turn.success);
}

function describe(issue: z.core.$ZodIssue): string {
  const path = issue.path.map(String).join(".");
  // With the number of the turn, every problem would be its own kind.
  return `${path.replace(/\.\d+\./, ".N.") || "the record"}: ${issue.message}`;
}

/** Groups items by key, in order of first appearance; Node 20 has no `Map.groupBy`. */
export function groupBy<Key, Item>(
  items: Iterable<Item>,
  keyOf: (item: Item) => Key,
): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
