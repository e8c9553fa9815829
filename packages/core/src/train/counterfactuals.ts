/**
 * Tries what was not done: at some steps of every group, other actions of the group are tried on
 * copies of the world, one that is refused and one that is carried out, and the world model learns
 * what they bring. An agent that only learns from what it does sees few refusals of what it would
 * do next, and none where it chooses well.
 *
 * The states are drawn from those that teach the world model (PaW eq. 4). A state in which the
 * group's actions are all refused, or all carried out, is left out, so that half of what is learnt
 * are refusals.
 */
import { ConfigError } from "../config/config-error.js";
import { type Environment, isRemote } from "../envs/env.js";
import type { PawOptions } from "../objectives/paw-options.js";
import { createRandom, mixSeed } from "../random.js";
import { triedOut } from "../rollout/choice/foresight.js";
import type { Group, Step } from "../rollout/episode.js";
import { startEpisode } from "../rollout/episode-run.js";
import { bringsPolicy, type Situation } from "../rollout/policy.js";
import { appendObservation, appendResponse } from "../text/encode.js";
import type { PromptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import type { Counterfactual } from "../update/counterfactuals.js";
import { positionsOf, type SelectedTransition } from "../update/transitions.js";
import { selectedSteps } from "../update/update.js";

/** Where actions are tried, and how they become tokens. */
export interface CounterfactualSetup {
  readonly environment: Environment;
  readonly style: PromptStyle;
  readonly tokenizer: Tokenizer;
  /** The longest sequence the engine takes; longer ones are left out. */
  readonly maxTokens: number;
  /** The seed of the update. */
  readonly seed: number;
}

/** Actions that are tried in a state at most, until one of either kind is found. */
const MOST_TRIES = 16;

/** What other actions would have brought in some states of each group. */
export async function counterfactualsOf(
  groups: readonly Group[],
  paw: PawOptions,
  setup: CounterfactualSetup,
): Promise<readonly Counterfactual[]> {
  if (paw.counterfactual === 0 || paw.loss === "off" || paw.lambda === 0) return [];
  const random = createRandom(mixSeed(setup.seed, "counterfactuals"));
  const selected = selectedSteps(groups, paw).filter((transition) => transition.selected);
  const found: Counterfactual[] = [];
  for (const [g, group] of groups.entries()) {
    const others = differentActions(group);
    let states = 0;
    for (const transition of random.shuffle(selected.filter((one) => one.group === g))) {
      if (states === paw.counterfactual) break;
      const pair = await tried(transition, random.shuffle([...others]), setup);
      if (pair.length < 2) continue;
      found.push(...pair);
      states += 1;
    }
  }
  return found;
}

/** A step for each of the group's actions that could be read. */
function differentActions({ episodes }: Group): readonly Step[] {
  const steps = episodes
    .filter(({ stop }) => stop !== "broken")
    .flatMap((episode) => episode.steps)
    .filter(({ wellFormed, refused, sequence }) => wellFormed && !refused && sequence);
  return [...new Map(steps.map((step) => [step.action, step])).values()];
}

/** One action that is refused in the state before this step, and one that is not, as far as there are. */
async function tried(
  { group, episode, step: at, source }: SelectedTransition,
  others: readonly Step[],
  setup: CounterfactualSetup,
): Promise<readonly Counterfactual[]> {
  const step = source.steps[at]!;
  const run = await startEpisode({
    ...{ environment: setup.environment, style: setup.style, policy: source.policy },
    ...{ task: source.task, group: source.group, attempt: source.attempt, seed: source.seed },
    ...{ fork: { episode: source, step: at } },
    ...{ stepLimit: Number.POSITIVE_INFINITY, invalidActionLimit: Number.POSITIVE_INFINITY },
  });
  try {
    // A world that does not repeat what it did has no such state.
    if (run.episode !== undefined) return [];
    const situation = run.situation();
    const kinds = new Map<boolean, Counterfactual>();
    const different = others.filter(({ action }) => action !== step.action).slice(0, MOST_TRIES);
    for (const other of different) {
      if (kinds.size === 2) break;
      const { observation, valid, done } = await triedOut(situation, other.action);
      if (kinds.has(valid)) continue;
      const sequence = sequenceOf(step, other, { observation, done }, situation, setup);
      if (sequence.ids.length <= setup.maxTokens)
        kinds.set(valid, { group, episode, sequence, valid });
    }
    return [...kinds.values()];
  } finally {
    await run.close().catch(() => undefined);
  }
}

/** The step's prompt, followed by another step's response and what it brings. */
function sequenceOf(
  step: Step,
  { response, sequence: said }: Step,
  { observation, done }: { readonly observation: string; readonly done: boolean },
  { tools }: Situation,
  { tokenizer, style }: CounterfactualSetup,
) {
  const { ids, spans } = step.sequence!;
  const { actionStart } = positionsOf(step.sequence!);
  const prompt = {
    ids: ids.slice(0, actionStart),
    spans: spans.filter(({ end }) => end <= actionStart),
  };
  const action = positionsOf(said!);
  const answered = appendResponse(prompt, {
    ids: said!.ids.slice(action.actionStart, action.actionEnd),
  });
  return appendObservation(answered, tokenizer, style, observation, done, { response, tools });
}

/** Throws where other actions cannot be tried, or what they bring would not be learnt. */
export function checkCounterfactuals(
  { counterfactual, loss, entropy, targets, until, skip }: PawOptions,
  environment: Environment,
): void {
  if (counterfactual === 0 || loss === "off") return;
  const refuse = (why: string): never => {
    throw new ConfigError(
      `paw.counterfactual ${counterfactual}: ${why}, or set paw.counterfactual to 0`,
    );
  };
  if (entropy === "full")
    refuse(
      "its states are selected before the engine is asked for full entropies: set paw.entropy sampled",
    );
  if (targets !== "own" || until !== undefined || skip !== undefined)
    refuse("it learns what the world answers, whole: leave paw.targets, until and skip out");
  if (bringsPolicy(environment))
    refuse(`episodes of ${environment.name} are played by a program: take another environment`);
  const world = environment.create();
  if (isRemote(world) && world.clone === undefined)
    refuse(`worlds of ${environment.name} cannot be copied: take another environment`);
}
