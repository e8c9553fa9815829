/**
 * Branching rollouts: a group is some trees. First come their trunks, episodes from the task's start;
 * then each is left at the states that `rollout.branch` chooses, and continued from there, by
 * episodes that share all steps before. `advantages/tree.ts` says what a step is worth then.
 *
 *   entropy   the states of the highest action entropy (PaW eq. 4's, of the sampled tokens), as
 *             entropy-guided trees are grown (Hou et al. 2025, arXiv 2506.11902, TreeRL §3)
 *   refused   first the state before the first refused action, then by entropy
 *
 * Of equal entropies the earlier state goes first. The start is no such state: a group's trunks begin
 * there anyway. Where an episode has too few states, or broke, its continuations begin where it did.
 *
 * A world in this process is copied; one that answers later repeats the steps, and breaks the
 * continuation if it answers otherwise. An agent's program is run again, and answered as before;
 * where its calls are no single conversation, it is not left.
 */
import { z } from "zod";
import type { AdvantageOptions } from "../advantages/advantages.js";
import { ConfigError } from "../config/config-error.js";
import { type Env, type Environment, isRemote } from "../envs/env.js";
import { UserError } from "../errors.js";
import type { Episode, Fork, Step } from "../rollout/episode.js";
import { carries, type PaceOptions, paceOptions } from "../rollout/pace.js";
import { bringsPolicy } from "../rollout/policy.js";
import type { RolloutOptions } from "../rollout/rollout.js";
import { type Played, together } from "../rollout/rollouts.js";
import { drawnLogprobs } from "../text/sequence.js";
import { sampledEntropy } from "../update/paw.js";

/** Settings of branching: types, defaults, help and errors come from here. */
const branchOptions = z
  .strictObject({
    points: z
      .int()
      .min(0)
      .default(0)
      .describe("branch off each episode that begins with its task at so many of its states"),
    width: z
      .int()
      .min(2)
      .default(2)
      .describe("continuations of each such state, the episode's own among them"),
    choose: z
      .enum(["entropy", "refused"])
      .default("entropy")
      .describe(
        "which states: those of the highest action entropy, or first the one before the first refused action",
      ),
  })
  .prefault({});

export type BranchOptions = z.output<typeof branchOptions>;

/** Settings of an update's rollouts. */
export const rolloutOptions = paceOptions.unwrap().extend({ branch: branchOptions }).prefault({});

export type TrainRolloutOptions = z.output<typeof rolloutOptions>;

/** Continuations of each trunk. */
const branchesOf = ({ points, width }: BranchOptions): number => points * (width - 1);

/** Throws if a group cannot be made of trees, or nothing compares their branches. */
export function checkBranching(
  config: {
    readonly rollout: PaceOptions & { readonly branch: BranchOptions };
    readonly groupSize: number;
    readonly advantage: Pick<AdvantageOptions, "name">;
  },
  environment: Environment,
): void {
  const { rollout, groupSize, advantage } = config;
  const { points, width } = rollout.branch;
  if (points === 0) {
    if (advantage.name !== "tree") return;
    throw new ConfigError(
      "advantage tree: no episode branches off another, so it would be grpo; set rollout.branch.points above 0, or advantage grpo",
    );
  }
  const size = 1 + branchesOf(rollout.branch);
  const off = "or set rollout.branch.points to 0";
  const setting = `rollout.branch.points ${points}, width ${width}`;
  if (size > groupSize)
    throw new ConfigError(
      `${setting}: an episode with its ${size - 1} branches does not fit into a group of ${groupSize}: raise groupSize to ${size}, ${off}`,
    );
  if (groupSize % size !== 0)
    throw new ConfigError(
      `${setting}: an episode and its branches are ${size}, and a group of ${groupSize} is not made of such trees: set groupSize to ${Math.ceil(groupSize / size) * size}, ${off}`,
    );
  if (advantage.name !== "tree")
    throw new ConfigError(
      `${setting}: advantage ${advantage.name} does not know shared steps: set advantage tree, ${off}`,
    );
  if (carries(rollout))
    throw new ConfigError(
      `${setting}: groups that are carried over are not complete: let stragglers break, ${off}`,
    );
  if (bringsPolicy(environment)) {
    if (environment.repeatable === true) return;
    throw new ConfigError(
      `${setting}: episodes of ${environment.name} are played by a program whose calls are not all recorded, so that it could be answered again: leave out its filter, ${off}`,
    );
  }
  const world = environment.create();
  if (isRemote(world) && world.clone === undefined)
    throw new ConfigError(
      `${setting}: worlds of ${environment.name} can be neither copied nor repeated: ${off.slice(3)}`,
    );
}

/** The steps before which an episode is left, in the order of time. */
export function branchingSteps(
  {
    steps,
    stop,
    task,
    untrained,
    hint = 0,
  }: Pick<Episode, "steps" | "stop" | "task" | "untrained" | "hint">,
  { points, choose }: Pick<BranchOptions, "points" | "choose">,
): readonly number[] {
  const isOne = untrained === undefined && steps.every(({ time }) => time === undefined);
  if (stop === "broken" || !isOne) return [];
  const entropyOf = ({ sequence }: Step): number => {
    const logprobs = sequence && drawnLogprobs(sequence);
    if (logprobs !== undefined) return sampledEntropy(logprobs);
    throw new UserError(
      `rollout.branch: the actions of task ${task.id} were sampled without log-probabilities, so that the uncertain ones cannot be told: sample with another engine, or set rollout.branch.points to 0`,
    );
  };
  const own = steps.slice(hint);
  const refused = choose === "refused" ? own.findIndex(({ valid }) => !valid) : -1;
  const keys = own.map((step, at) => (at === refused ? Number.POSITIVE_INFINITY : entropyOf(step)));
  return [...keys.keys()]
    .slice(1)
    .sort((a, b) => keys[b]! - keys[a]! || a - b)
    .slice(0, points)
    .sort((a, b) => a - b)
    .map((at) => hint + at);
}

/** Plays the groups of trees, by playing parts of their attempts. */
export async function playTrees(
  play: (
    part: Pick<RolloutOptions, "groupSize" | "firstAttempt" | "forkOf" | "onSituation">,
  ) => Promise<Played>,
  {
    groupSize,
    branch,
    hints,
  }: {
    readonly groupSize: number;
    readonly branch: BranchOptions;
    /** Where each group begins, if not with its task. */
    readonly hints?: readonly (Fork | undefined)[];
  },
): Promise<Played> {
  const branches = branchesOf(branch);
  const trunks = groupSize / (1 + branches);
  const worlds = new Map<string, Env>();
  const keyOf = (group: number, attempt: number, step: number) => `${group} ${attempt} ${step}`;
  const first = await play({
    groupSize: trunks,
    ...(hints && { forkOf: (group) => hints[group] }),
    onSituation({ group, attempt, index, env }) {
      if (!isRemote(env)) worlds.set(keyOf(group, attempt, index), env.clone());
    },
  });
  const forks = first.groups.map(({ episodes }) =>
    episodes.flatMap((episode): readonly (Fork | undefined)[] => {
      const steps = branchingSteps(episode, branch);
      return Array.from({ length: branches }, (_, i) => {
        const step = steps[Math.floor(i / (branch.width - 1))];
        if (step === undefined) return hints?.[episode.group];
        const world = worlds.get(keyOf(episode.group, episode.attempt, step));
        return { episode, step, world };
      });
    }),
  );
  const more = await play({
    groupSize: groupSize - trunks,
    firstAttempt: trunks,
    forkOf: (group, attempt) => forks[group]![attempt - trunks],
  });
  return {
    groups: first.groups.map((group, g) => ({
      ...group,
      episodes: [...group.episodes, ...more.groups[g]!.episodes],
    })),
    pace: together(first.pace, more.pace),
  };
}
