/**
 * The delete relaxation: how far a state is from the goal if facts, once true, stayed true. The
 * cost of each literal is found by adding up costs; the actions on the cheapest paths to the goal
 * are the relaxed plan, and its length is the estimate (Hoffmann and Nebel's FF).
 */
import { type Grounding, groundWorld } from "./ground.js";
import type { State } from "./state.js";
import type { Action, World } from "./world.js";

/** The relaxation's estimate for a state. */
export interface Estimate {
  /** Number of actions in the relaxed plan; undefined if the goal can no longer be reached. */
  readonly distance: number | undefined;
  /** The actions of the relaxed plan that apply now. */
  readonly helpful: ReadonlySet<Action>;
}

/** Costs are capped here; literals this expensive are not distinguished. */
const DEAREST = 10_000;

const HOPELESS: Estimate = { distance: undefined, helpful: new Set() };

/** A function that estimates states of a world. */
export function createEstimator(world: World): (state: State) => Estimate {
  const grounding = groundWorld(world);
  const { operators, goal } = grounding;
  const users: number[][] = Array.from({ length: grounding.literals }, () => []);
  for (const [index, { needs }] of operators.entries()) {
    for (const literal of needs) users[literal]!.push(index);
  }
  return (state) => {
    if (goal === undefined) return HOPELESS;
    const costs = cheapestWays(grounding, users, goal, state);
    return costs === undefined ? HOPELESS : relaxedPlan(grounding, goal, costs);
  };
}

/**
 * The cost of every literal and the operator that produces it at that cost; -1 if there is none.
 */
interface Costs {
  readonly cost: Int32Array;
  readonly by: Int32Array;
}

/** Finds the cheapest paths to literals, nearest first, until all goals have one. */
function cheapestWays(
  grounding: Grounding,
  users: readonly (readonly number[])[],
  goal: readonly number[],
  state: State,
): Costs | undefined {
  const { literals, operators } = grounding;
  const cost = new Int32Array(literals).fill(-1);
  const by = new Int32Array(literals).fill(-1);
  const done = new Uint8Array(literals);
  const sum = new Int32Array(operators.length);
  const missing = Int32Array.from(operators, ({ needs }) => needs.length);
  const buckets: number[][] = [];
  const offer = (literal: number, price: number, giver: number): void => {
    if (cost[literal] === -1 || price < cost[literal]!) {
      cost[literal] = price;
      by[literal] = giver;
      buckets[price] ??= [];
      buckets[price].push(literal);
    }
  };
  const fire = (index: number): void => {
    const { action, gives } = operators[index]!;
    const price = Math.min(DEAREST, sum[index]! + (action === undefined ? 0 : 1));
    for (const literal of gives) offer(literal, price, index);
  };
  for (const literal of grounding.literalsOf(state)) offer(literal, 0, -1);
  for (const [index, { needs }] of operators.entries()) {
    if (needs.length === 0) fire(index);
  }
  const open = new Set(goal);
  for (let price = 0; price < buckets.length && open.size > 0; price++) {
    // A bucket may grow while it is processed: operators without cost add to it.
    for (const literal of buckets[price] ?? []) {
      if (done[literal] === 0) {
        done[literal] = 1;
        open.delete(literal);
        for (const index of users[literal]!) {
          sum[index]! += price;
          missing[index]!--;
          if (missing[index] === 0) fire(index);
        }
      }
    }
  }
  return open.size === 0 ? { cost, by } : undefined;
}

/** Collects the actions on the cheapest paths to the goal. */
function relaxedPlan(grounding: Grounding, goal: readonly number[], costs: Costs): Estimate {
  const chosen = new Set<Action>();
  const helpful = new Set<Action>();
  const seen = new Set<number>();
  const stack = [...goal];
  for (let literal = stack.pop(); literal !== undefined; literal = stack.pop()) {
    const operator = grounding.operators[costs.by[literal]!];
    if (operator === undefined || seen.has(literal)) {
      continue; // it already holds, or its path is known
    }
    seen.add(literal);
    const { action, needs } = operator;
    if (action !== undefined) {
      chosen.add(action);
      if (needs.every((need) => costs.cost[need] === 0)) helpful.add(action);
    }
    stack.push(...needs);
  }
  return { distance: chosen.size, helpful };
}
