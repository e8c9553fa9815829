/** Choosing before acting on the command line: its settings, how it is prepared, what it cost. */
import { ConfigError } from "@pawl/core/config/config-error.js";
import { type Environment, isRemote } from "@pawl/core/envs/env.js";
import {
  type ChoiceCost,
  type Choosing,
  choosingPolicy,
  noCost,
  type Valuation,
} from "@pawl/core/rollout/choice/choosing-policy.js";
import {
  exactForesight,
  modelForesight,
  ownForesight,
} from "@pawl/core/rollout/choice/foresight.js";
import type { Knowledge } from "@pawl/core/rollout/choice/knowledge.js";
import { refusalReader, type WorldAnswer } from "@pawl/core/rollout/choice/refusals.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import { type ActingModel, bringsPolicy, type Policy } from "@pawl/core/rollout/policy.js";
import { rates } from "@pawl/core/rollout/tally.js";
import { type EvaluationOptions, evaluate } from "@pawl/core/train/evaluate.js";
import { hasSavedCritic, openSavedCritic, type SavedCritic } from "@pawl/training/saved-critic.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
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
  critic: z
    .boolean()
    .default(false)
    .describe(
      "also add the value that the critic of a run with ppo expects, by the best weight on choose.split",
    ),
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
/** The weights of a critic's value, as a share of the largest return, that are tried. */
const WEIGHTS = [2, 5, 10] as const;
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
  if (choose.critic && !hasSavedCritic(findSavedModel(settings.checkpoint!)))
    throw new ConfigError(
      `choose.critic: ${settings.checkpoint} has no critic: expected a checkpoint of a run with --advantage ppo; leave it out`,
    );
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

/** The weights of a choice: of predicted refusals, and of a critic's values. */
interface Weights {
  readonly beta: number;
  readonly critic?: number;
}

/** How it is chosen, found before the evaluation. */
export interface Chosen extends Weights {
  readonly split: string;
  /** Success on that split with each of these. */
  readonly tried: readonly (Weights & { readonly success: number })[];
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
  const policyWith = (choosing: Omit<Choosing, "candidates">, spent = noCost()): Policy =>
    choosingPolicy(acting, { candidates, whiteSpace, ...choosing }, spent);
  const close = async (): Promise<void> => undefined;
  if (choose.name === "vote") return { policy: policyWith({ beta: 0 }, cost), cost, close };
  if (choose.name === "exact")
    return { policy: policyWith({ beta: EXACT, foresight: exactForesight }, cost), cost, close };
  const opened: { dispose(): Promise<void> }[] = [];
  const closeAll = async (): Promise<void> => {
    for (const one of opened) await one.dispose();
  };
  try {
    const other =
      choose.name === "model" ? await loadForesight(choose.run, environment.name) : undefined;
    if (other !== undefined) opened.push(other);
    if (other?.protocol.context)
      warn(
        io,
        `${(choose as { run: string }).run} reads the initial state, which the agent does not see`,
      );
    const critic = choose.critic
      ? await openSavedCritic(findSavedModel(settings.checkpoint!))
      : undefined;
    if (critic !== undefined) opened.push(critic);
    const valuesOf = critic && valuation(critic, environment);
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
    const choosingWith = ({ beta, critic: weight = 0 }: Weights) => ({
      beta,
      ...(beta > 0 && { foresight }),
      ...(valuesOf !== undefined && weight > 0 && { critic: { weight, valuesOf } }),
    });
    const tried: (Weights & { readonly success: number })[] = [];
    /** The best of these weights and those before; of equal ones, the first. */
    const bestWith = async (all: readonly Weights[]): Promise<Weights> => {
      for (const weights of all) {
        const policy = policyWith(choosingWith(weights));
        const { success } = rates((await evaluate({ ...playing, policy })).all);
        tried.push({ ...weights, success });
      }
      const best = tried.reduce((top, one) => (one.success > top.success ? one : top));
      return { beta: best.beta, ...(best.critic !== undefined && { critic: best.critic }) };
    };
    const { beta } =
      choose.beta === undefined ? await bestWith(BETAS.map((one) => ({ beta: one }))) : choose;
    // What was not tried to find β is tried without the critic, too.
    const weights = [...(tried.length === 0 ? [0] : []), ...WEIGHTS];
    const chosen =
      critic === undefined
        ? { beta: beta! }
        : await bestWith(weights.map((weight) => ({ beta: beta!, critic: weight })));
    return {
      policy: policyWith(
        // What is recorded is to be looked at.
        { ...choosingWith(chosen), foresight: modelForesight(model, reader, { whole: true }) },
        cost,
      ),
      cost,
      chosen: { ...chosen, split, tried },
      close: closeAll,
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** A critic's word on what follows actions: its value of their last token, as a share of the largest return. */
function valuation(critic: SavedCritic, { maxReturn }: Environment): Valuation {
  return async (answered) => {
    const sequences = answered.map(({ ids }) => ({
      ids,
      targets: Uint8Array.from(ids, (_, at) => (at === ids.length - 1 ? 1 : 0)),
    }));
    const values = await critic.values(
      sequences,
      sequences.map(() => ({ maxReturn })),
    );
    return values.map((tokens) => tokens.at(-1)! / maxReturn);
  };
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
    const named = ({ beta, critic }: Weights): string =>
      critic === undefined ? `${beta}` : `${beta} with ${critic} × the critic's value`;
    const tried = chosen.tried
      .map(({ success, ...weights }) => `${named(weights)}: ${percent(success)}`)
      .join(", ");
    print(
      io,
      `\nβ = ${named(chosen)}${tried === "" ? "" : `, the best on ${chosen.split} (${tried})`}`,
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
