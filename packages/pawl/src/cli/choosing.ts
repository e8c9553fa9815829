/** Choosing before acting on the command line: its settings, how it is prepared, what it cost. */
import { ConfigError } from "@pawl/core/config/config-error.js";
import { type Environment, isRemote } from "@pawl/core/envs/env.js";
import {
  type ChoiceCost,
  choosingPolicy,
  noCost,
} from "@pawl/core/rollout/choice/choosing-policy.js";
import {
  exactForesight,
  type Foresight,
  modelForesight,
  ownForesight,
} from "@pawl/core/rollout/choice/foresight.js";
import type { Knowledge } from "@pawl/core/rollout/choice/knowledge.js";
import { refusalReader, type WorldAnswer } from "@pawl/core/rollout/choice/refusals.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import { type ActingModel, bringsPolicy, type Policy } from "@pawl/core/rollout/policy.js";
import { rates } from "@pawl/core/rollout/tally.js";
import { type EvaluationOptions, evaluate } from "@pawl/core/train/evaluate.js";
import { loadForesight } from "@pawl/worldmodel/saved.js";
import { z } from "zod";
import { number, percent, table } from "./format.js";
import { type Io, print, warn } from "./io.js";

const foreseeing = {
  beta: z
    .number()
    .min(0)
    .optional()
    .describe(
      "β: weight of the predicted refusal beside the votes (default: the best on choose.split)",
    ),
  split: z
    .string()
    .optional()
    .describe(
      "split on which β is chosen, and how refusals read is learnt (default: valid_train, or train where there is none)",
    ),
  tasks: z.int().min(1).default(128).describe("tasks of choose.split to play, for each β"),
};

/** The settings of choosing. */
export const choosingOptions = {
  candidates: z
    .int()
    .min(1)
    .default(1)
    .describe("actions to sample for each step, of which the best is taken (1: acts at once)"),
  choose: z
    .discriminatedUnion("name", [
      z.strictObject({
        name: z
          .literal("vote")
          .describe(
            "by what: vote, or votes and predicted refusals: of the agent itself, of another model, or exact (the world is copied)",
          ),
      }),
      z.strictObject({ name: z.literal("self"), ...foreseeing }),
      z.strictObject({
        name: z.literal("model"),
        run: z
          .string()
          .min(1)
          .describe("world model: a run of pawl wm train or pawl train, or a model folder"),
        ...foreseeing,
      }),
      z.strictObject({ name: z.literal("exact") }),
    ])
    .optional(),
} as const;

/** How to choose. */
export type ChooseConfig = NonNullable<z.output<typeof choosingOptions.choose>>;

/** The settings as far as choosing looks at them. */
export interface ChoosingSettings {
  readonly candidates: number;
  readonly choose?: ChooseConfig | undefined;
  readonly checkpoint?: string | undefined;
  readonly temperature: number;
}

/** The values of β that are tried; with 0, votes decide. */
const BETAS = [0, 0.25, 0.5, 1, 2] as const;
/** With exact knowledge, a refusal outweighs any number of votes. */
const EXACT = 2;

/** Refuses what cannot be chosen from, before anything is played; `played` are the splits of its tasks. */
export function refuseChoosing(
  settings: ChoosingSettings,
  environment: Environment,
  played: readonly string[],
): void {
  const { candidates, choose = { name: "vote" }, temperature } = settings;
  if (candidates === 1) return;
  if (bringsPolicy(environment))
    throw new ConfigError(
      `candidates: episodes of ${environment.name} are played by a program, which takes every answer as it comes: leave it out`,
    );
  if (temperature === 0)
    throw new ConfigError(
      "candidates: at temperature 0 all would be the same action: set --temperature, to 1 for example, or leave --candidates out",
    );
  if (choose.name === "exact" && !canCopy(environment))
    throw new ConfigError(
      `choose: exact tries candidates on copies of the world, and worlds of ${environment.name} cannot be copied: use vote, self or model`,
    );
  if (choose.name !== "self" && choose.name !== "model") return;
  const split = splitOf(choose, environment);
  if (played.includes(split))
    throw new ConfigError(
      `choose.split: β would be chosen on ${split}, which is reported: give another one of ${environment.splits.join(", ")}`,
    );
}

function canCopy(environment: Environment): boolean {
  const world = environment.create();
  return !isRemote(world) || world.clone !== undefined;
}

function splitOf(
  { split }: { readonly split?: string | undefined },
  { splits }: Environment,
): string {
  return split ?? (splits.includes("valid_train") ? "valid_train" : "train");
}

/** How it is chosen, found before the evaluation. */
export interface Chosen {
  readonly beta: number;
  readonly split: string;
  /** Success on that split with each β. */
  readonly tried: readonly { readonly beta: number; readonly success: number }[];
}

/** A policy that chooses, what it spends, and how β was found. */
export interface ChoosingPlayer {
  readonly policy: Policy;
  readonly cost: ChoiceCost;
  readonly chosen?: Chosen | undefined;
  close(): Promise<void>;
}

/** Prepares choosing: opens the world model, learns how the world refuses, and finds β. */
export async function openChoosing(
  settings: ChoosingSettings,
  acting: ActingModel,
  rest: Pick<EvaluationOptions, "environment" | "seed" | "signal" | "stepLimit"> & {
    readonly io: Io;
  },
): Promise<ChoosingPlayer> {
  const { candidates, choose = { name: "vote" } } = settings;
  const { environment, io } = rest;
  const { whiteSpace } = environment;
  const cost = noCost();
  const policyWith = (beta: number, foresight?: Foresight, spent = noCost()): Policy =>
    choosingPolicy(acting, { candidates, beta, foresight, whiteSpace }, spent);
  const close = async (): Promise<void> => undefined;
  if (choose.name === "vote") return { policy: policyWith(0, undefined, cost), cost, close };
  if (choose.name === "exact")
    return { policy: policyWith(EXACT, exactForesight, cost), cost, close };
  const other =
    choose.name === "model" ? await loadForesight(choose.run, environment.name) : undefined;
  if (other?.protocol.context)
    warn(
      io,
      `${(choose as { run: string }).run} reads the initial state, which the agent does not see`,
    );
  try {
    const split = splitOf(choose, environment);
    const playing = { ...rest, style: acting.style, split, tasks: choose.tasks };
    const answers: WorldAnswer[] = [];
    await evaluate({
      ...playing,
      policy: enginePolicy(acting),
      onEpisode: ({ steps }) => answers.push(...steps.filter(({ wellFormed }) => wellFormed)),
    });
    const reader = refusalReader(answers);
    const model = other ?? ownForesight(acting);
    const foresight = modelForesight(model, reader);
    const tried: { readonly beta: number; readonly success: number }[] = [];
    for (const beta of choose.beta === undefined ? BETAS : []) {
      const policy = policyWith(beta, beta === 0 ? undefined : foresight);
      const { success } = rates((await evaluate({ ...playing, policy })).all);
      tried.push({ beta, success });
    }
    const beta =
      choose.beta ?? tried.reduce((best, one) => (one.success > best.success ? one : best)).beta;
    return {
      // What is recorded is to be looked at.
      policy: policyWith(beta, modelForesight(model, reader, { whole: true }), cost),
      cost,
      chosen: { beta, split, tried },
      close: () => other?.dispose() ?? close(),
    };
  } catch (error) {
    await other?.dispose();
    throw error;
  }
}

/** What is said of choosing after an evaluation. */
export interface ChoosingResult {
  readonly chosen?: Chosen | undefined;
  readonly cost: ChoiceCost;
  readonly knowledge?: Knowledge | undefined;
}

/** The same as data. */
export const choosingJson = ({ chosen, cost, knowledge }: ChoosingResult) => ({
  ...chosen,
  ...cost,
  ...(knowledge && { knowledge }),
});

/** The same for people. */
export function printChoosing({ chosen, cost, knowledge }: ChoosingResult, io: Io): void {
  if (chosen !== undefined) {
    const tried = chosen.tried
      .map(({ beta, success }) => `${beta}: ${percent(success)}`)
      .join(", ");
    print(
      io,
      `\nβ = ${chosen.beta}${tried === "" ? "" : `, the best on ${chosen.split} (${tried})`}`,
    );
  }
  const { steps, contested, acted, candidates, read, sampled, sampling, predicting } = cost;
  const each = (count: number): string => number(count / steps, 1);
  print(
    io,
    `\nthere was a choice at ${percent(contested / steps)} of ${number(steps)} steps. Tokens a step: ${each(acted)} of the action, ${each(candidates)} of all candidates, ${each(sampled)} predicted, ${each(read)} in the prompts of predictions. Seconds: ${number(sampling, 1)} to sample, ${number(predicting, 1)} to predict`,
  );
  if (knowledge === undefined) return;
  const { recall, falseAlarms, brier, brierOfShare, exact, bins, answers } = knowledge;
  print(
    io,
    `\nof ${number(knowledge.candidates)} candidates ${percent(knowledge.refused)} would have been refused. Foreseen (a chance of one half or more): ${said(recall)} of those, ${said(falseAlarms)} of the others. Brier score ${number(brier, 3)} (${number(brierOfShare, 3)} by their share alone). Answers predicted word for word: ${percent(exact)}`,
  );
  for (const [title, what, some] of [
    ["chance of refusal", "refused", bins],
    ["probability of an answer", "came", answers],
  ] as const) {
    const rows = some.map((bin) => [
      `${number(bin.from, 1)} – ${number(bin.from + 0.1, 1)}`,
      number(bin.candidates),
      percent(bin.predicted),
      percent(bin.happened),
    ]);
    print(io, "");
    for (const line of table([title, "candidates", "predicted", what], rows)) print(io, line);
  }
}

const said = (share: number | undefined): string => (share === undefined ? "none" : percent(share));
