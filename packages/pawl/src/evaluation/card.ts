/**
 * The result card of an evaluation: what was played, how, with which result, and the outcome of every
 * task, so that two evaluations can be compared task by task.
 */
import { createHash } from "node:crypto";
import { cpus, totalmem } from "node:os";
import { UserError } from "@pawl/core/errors.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { type Counts, rates, type Tally } from "@pawl/core/rollout/tally.js";
import { successInterval } from "@pawl/core/success-interval.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import { withoutSecrets } from "@pawl/core/trust/secrets.js";
import { packageVersion } from "@pawl/core/version.js";
import { z } from "zod";
import { bootstrapInterval, METHODS } from "./intervals.js";
import type { TaskList } from "./task-list.js";

const count = z.int().min(0);
const interval = z.tuple([z.number(), z.number()]);

const figures = z.object({
  episodes: count,
  broken: count.describe("excluded from all rates"),
  success: z.number().optional(),
  interval: interval.optional(),
  score: z.number().optional(),
  return: z.number().optional(),
  steps: z.number().optional(),
  invalid: z.number().optional(),
});

const outcome = z.object({
  task: z.string(),
  type: z.string(),
  goal: z.string().describe("beginning of the goal's SHA-256"),
  success: z.array(z.boolean().nullable()).describe("by attempt; null: broken"),
  return: z.array(z.number().nullable()),
});

const bin = z.object({
  from: z.number(),
  candidates: count,
  predicted: z.number(),
  happened: z.number(),
});

const choosing = z
  .looseObject({
    knowledge: z
      .object({
        candidates: count,
        refused: z.number(),
        recall: z.number().optional(),
        falseAlarms: z.number().optional(),
        brier: z.number(),
        brierOfShare: z.number(),
        bins: z.array(bin).readonly(),
        exact: z.number(),
        answers: z.array(bin).readonly(),
      })
      .optional()
      .describe("what was known of the agent's own candidates"),
  })
  .describe("how actions were chosen among candidates, and what that cost");

/** The form in which cards are stored. */
export const cardSchema = z.object({
  schema: z.literal(1),
  kind: z.literal("pawl-evaluation"),
  createdAt: z.iso.datetime(),
  tasks: z.object({
    name: z.string(),
    tasks: count,
    sha256: z.string(),
    environment: z.string(),
    split: z.string(),
    goals: z.string().describe("SHA-256 over the goals as they were played"),
  }),
  player: z.string().describe("policy, or the model that was evaluated"),
  protocol: z
    .record(z.string(), z.unknown())
    .describe("settings that decide what the numbers mean, such as temperature and prompt"),
  intervals: z.string().describe("how the intervals were computed"),
  results: figures.extend({
    byType: z.record(z.string(), figures),
    solvedWithin: z.array(z.number()).optional(),
    passAll: z.array(z.number()).optional(),
    brokenBecause: z.record(z.string(), z.number()).optional(),
  }),
  choosing: choosing.optional(),
  outcomes: z.array(outcome),
  versions: z.record(z.string(), z.string()),
  command: z.string(),
  machine: z.string(),
});

/** A result card. */
export type Card = z.output<typeof cardSchema>;

/** The outcome of one task. */
export type Outcome = Card["outcomes"][number];

/** The result of some tasks. */
export type Figures = z.output<typeof figures>;

/** A problem with a card. */
export class CardError extends UserError {
  override readonly name = "CardError";
}

/** Collects outcomes while episodes end, in any order. */
export function collectOutcomes(): {
  add(episode: Episode): void;
  /** In the order of the tasks. */
  outcomes(order: readonly { readonly id: string }[]): readonly Outcome[];
} {
  const byTask = new Map<string, Outcome>();
  return {
    add({ task, goal, attempt, stop, success, return: worth }) {
      const known = byTask.get(task.id);
      const one = known ?? { task: task.id, type: task.type, goal: "", success: [], return: [] };
      const played = stop !== "broken";
      // A world that could not be reset has no goal.
      if (goal !== "") one.goal = hashOf(goal).slice(0, 16);
      one.success[attempt] = played ? success : null;
      one.return[attempt] = played ? worth : null;
      byTask.set(task.id, one);
    },
    outcomes: (order) =>
      order.flatMap(({ id }) => {
        const one = byTask.get(id);
        return one === undefined ? [] : [one];
      }),
  };
}

/** What a card says besides the numbers. */
export interface CardFacts {
  readonly list: TaskList;
  readonly environment: string;
  readonly split: string;
  readonly player: string;
  readonly protocol: Readonly<Record<string, unknown>>;
  readonly command: string;
  readonly choosing?: Card["choosing"];
}

/** Makes a card of an evaluation that has ended. */
export function makeCard(facts: CardFacts, tally: Tally, outcomes: readonly Outcome[]): Card {
  const { tasks, solvedWithin, passAll } = tally.attempts;
  const once = solvedWithin.length < 2;
  const of = (type?: string) => outcomes.filter((one) => type === undefined || one.type === type);
  return {
    schema: 1,
    kind: "pawl-evaluation",
    createdAt: new Date().toISOString(),
    tasks: {
      ...facts.list,
      environment: facts.environment,
      split: facts.split,
      goals: hashOf(outcomes.map(({ task, goal }) => `${task} ${goal}\n`).join("")),
    },
    player: facts.player,
    protocol: withoutSecretSettings({ ...facts.protocol }).settings,
    intervals: once ? METHODS.wilson : METHODS.bootstrap,
    results: {
      ...figuresOf(tally.all, of(), once),
      ...(!once && { solvedWithin: solvedWithin.map((n) => n / tasks), passAll: [...passAll] }),
      ...(tally.broken.size > 0 && { brokenBecause: Object.fromEntries(tally.broken) }),
      byType: Object.fromEntries(
        [...tally.byType]
          .sort(([a], [b]) => a.localeCompare(b))
          .map(([type, counts]) => [type, figuresOf(counts, of(type), once)]),
      ),
    },
    ...(facts.choosing && { choosing: facts.choosing }),
    outcomes: [...outcomes],
    versions: {
      pawl: packageVersion(),
      node: process.version,
      platform: `${process.platform}-${process.arch}`,
    },
    // A key on the command line must not be published with the result.
    command: withoutSecrets(facts.command),
    machine: machineName(),
  };
}

function figuresOf(counts: Counts, outcomes: readonly Outcome[], once: boolean): Figures {
  const { success, score, meanReturn, meanSteps, invalid } = rates(counts);
  const numbers = { success, score, return: meanReturn, steps: meanSteps, invalid };
  const means = outcomes.flatMap((one) => meanSuccess(one) ?? []);
  return {
    episodes: counts.episodes,
    broken: counts.broken,
    ...(counts.episodes > 0 && {
      // Several attempts at one task are not independent: tasks are what is drawn.
      interval: [...(once ? successInterval(counts) : bootstrapInterval(means))],
    }),
    // JSON has no NaN.
    ...Object.fromEntries(Object.entries(numbers).filter(([, value]) => Number.isFinite(value))),
  } as Figures;
}

/** The share of a task's attempts that succeeded; undefined if all broke. */
export function meanSuccess({ success }: Outcome): number | undefined {
  const played = success.filter((one) => one !== null && one !== undefined);
  if (played.length === 0) return undefined;
  return played.filter(Boolean).length / played.length;
}

/** This machine in a few words. */
function machineName(): string {
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown processor"}, ${gigabytes} GiB`;
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
