/**
 * The expert: follows a game's walkthrough as long as the episode does, and otherwise searches for
 * a plan from the current state.
 */
import { EnvError } from "@pawl/core/envs/env.js";
import type { Play } from "./game.js";
import { createEstimator, type Estimate } from "./relaxation.js";
import { applicableActions, changeState, changesOf, goalReached, type State } from "./state.js";
import type { Action, World } from "./world.js";

/** Knows the way to the goal of one episode. */
export interface Guide {
  /** The next command on a way to the goal. */
  next(): string;
  /** Called for every command that was carried out. */
  saw(command: string, action: Action): void;
  /** The guide of a copy of the episode. */
  clone(play: Play): Guide;
}

/** The rest of a plan: commands of the walkthrough, or actions that a search found. */
type Way = readonly (string | Action)[];

/** A guide through an episode, which starts with the game's walkthrough if there is one. */
export function createGuide(play: Play, start: Way = play.game.walkthrough ?? []): Guide {
  let way = start;
  const command = (step: string | Action): string =>
    typeof step === "string" ? step : play.commandFor(step);
  return {
    next() {
      const first = way[0];
      if (first === undefined || !play.commands().includes(command(first))) {
        const found = findPlan(play.game.world, play.state);
        if (found === undefined) {
          const reason = "its bounded search found no way to the goal";
          throw new EnvError(`${play.game.file}: the expert knows no command: ${reason}`);
        }
        // If the goal already holds, any command ends the episode.
        way = found.length > 0 ? found : play.commands().slice(0, 1);
      }
      return command(way[0]!);
    },
    saw(taken, action) {
      const first = way[0];
      way = first === taken || first === action ? way.slice(1) : [];
    },
    clone: (copy) => createGuide(copy, way),
  };
}

/**
 * Maximum number of expanded states: a count and not a time, so that the search is reproducible.
 */
const MOST_STATES = 3000;

/** A state to expand: reached by `action` from its parent, whose estimate it is queued by. */
interface Node {
  readonly parent: Node | undefined;
  readonly action: Action | undefined;
  readonly from: State;
}

/** Estimators are expensive to create, so a world keeps its own for its lifetime. */
const estimators = new WeakMap<World, (state: State) => Estimate>();

function estimatorOf(world: World): (state: State) => Estimate {
  let estimator = estimators.get(world);
  if (estimator === undefined) {
    estimator = createEstimator(world);
    estimators.set(world, estimator);
  }
  return estimator;
}

/** Actions that lead from a state to the goal; undefined if none are found within bounds. */
export function findPlan(world: World, start: State): readonly Action[] | undefined {
  const estimate = estimatorOf(world);
  const relevant = relevantPredicates(world);
  const seen = new Set<string>();
  const queue: Node[][] = [[{ parent: undefined, action: undefined, from: start }]];
  for (let looked = 0; looked < MOST_STATES; ) {
    const bucket = queue.find((nodes) => nodes !== undefined && nodes.length > 0);
    const node = bucket?.shift();
    if (node === undefined) return undefined;
    const { from, action } = node;
    const state = action ? changeState(world, from, changesOf(world, from, action)) : from;
    const key = relevant.map((predicate) => state.facts[predicate]!.join()).join(";");
    if (seen.has(key)) continue;
    seen.add(key);
    looked++;
    if (goalReached(world, state)) return actionsTo(node);
    const { distance, helpful } = estimate(state);
    if (distance === undefined) continue;
    for (const next of applicableActions(world, state).flat()) {
      // Queued by the estimate of its parent: most successors are never expanded.
      const place = 2 * distance + (helpful.has(next) ? 0 : 1);
      queue[place] ??= [];
      queue[place].push({ parent: node, action: next, from: state });
    }
  }
  return undefined;
}

function actionsTo(end: Node): readonly Action[] {
  const actions: Action[] = [];
  for (let node: Node | undefined = end; node !== undefined; node = node.parent) {
    if (node.action !== undefined) actions.push(node.action);
  }
  return actions.reverse();
}

/** The changing predicates that determine which actions apply or whether the goal holds. */
function relevantPredicates(world: World): readonly number[] {
  const relevant = new Set(world.goalReads);
  for (const { reads, effects } of world.schemas) {
    for (const predicate of reads) relevant.add(predicate);
    for (const { conditionReads } of effects) {
      for (const predicate of conditionReads) relevant.add(predicate);
    }
  }
  return [...relevant].sort((left, right) => left - right);
}
