/** A bounded search for actions that reach the goal: greedy, by the relaxation's estimate. */
import { createEstimator, type Estimate } from "./relaxation.js";
import { applicableActions, changeState, changesOf, goalReached, type State } from "./state.js";
import type { Action, World } from "./world.js";

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
    if (node === undefined) {
      return undefined;
    }
    const { from, action } = node;
    const state = action ? changeState(world, from, changesOf(world, from, action)) : from;
    const key = relevant.map((predicate) => state.facts[predicate]!.join()).join(";");
    if (seen.has(key)) {
      continue;
    }
    seen.add(key);
    looked++;
    if (goalReached(world, state)) {
      return actionsTo(node);
    }
    const { distance, helpful } = estimate(state);
    if (distance === undefined) {
      continue;
    }
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
    if (node.action !== undefined) {
      actions.push(node.action);
    }
  }
  return actions.reverse();
}

/** The changing predicates that determine which actions apply or whether the goal holds. */
function relevantPredicates(world: World): readonly number[] {
  const relevant = new Set(world.goalReads);
  for (const { reads, effects } of world.schemas) {
    for (const predicate of reads) {
      relevant.add(predicate);
    }
    for (const { conditionReads } of effects) {
      for (const predicate of conditionReads) {
        relevant.add(predicate);
      }
    }
  }
  return [...relevant].sort((left, right) => left - right);
}
