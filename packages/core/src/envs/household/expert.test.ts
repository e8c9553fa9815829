import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dose } from "../../dose-testing.js";
import { createRandom } from "../../random.js";
import { act, admissible } from "./actions.js";
import { expertCommand, seekerCommand } from "./expert.js";
import { families, generateHouse, type HouseSettings, type Split, splitSizes } from "./house.js";
import { copyState, goalReached, type HouseState, initialState } from "./state.js";

const defaults: HouseSettings = { rooms: 2, receptacles: 8, objects: 8, families, seed: 0 };
const splits = Object.keys(splitSizes) as Split[];

function start(split: Split, index: number, settings: HouseSettings): HouseState {
  const house = generateHouse(split, index, settings);
  return initialState(
    house,
    house.objects.map((object) => object.name),
  );
}

/** Plays with a scripted player and returns the number of steps; every command must be valid. */
function solve(state: HouseState, player = expertCommand): number {
  for (let steps = 1; steps <= 50; steps++) {
    const command = player(state);
    const outcome = act(state, command);
    if (!outcome.valid) throw new Error(`refused ${command}: ${outcome.text}`);
    if (goalReached(state)) return steps;
  }
  throw new Error(`not solved in 50 steps: ${state.house.goal}`);
}

/** The minimum number of steps to the goal by exhaustive search, if less than `bound`. */
function fewestSteps(first: HouseState, bound: number): number {
  const keyOf = (s: HouseState) =>
    `${s.room},${s.at},${s.held},${s.open},${s.lit},${s.where},${s.marked}`;
  const seen = new Set([keyOf(first)]);
  let frontier = [first];
  for (let steps = 1; steps < bound; steps++) {
    const next: HouseState[] = [];
    for (const state of frontier) {
      for (const command of admissible(state)) {
        // These only undo: no shortest plan contains them.
        if (/^(look|close|switch off)/.test(command)) continue;
        const copy = copyState(state);
        act(copy, command);
        if (goalReached(copy)) return steps;
        const key = keyOf(copy);
        if (seen.has(key)) continue;
        seen.add(key);
        next.push(copy);
      }
    }
    frontier = next;
  }
  return bound;
}

describe("the expert", () => {
  it.each(splits)("solves the tasks of %s, in 8 steps or more on average", (split) => {
    const count = Math.min(splitSizes[split], dose(3000));
    let steps = 0;
    for (let index = 0; index < count; index++) steps += solve(start(split, index, defaults));
    expect(steps / count).toBeGreaterThanOrEqual(8);
    expect(steps / count).toBeLessThan(9);
  });

  it.each([
    [1, 3, 2],
    [1, 6, 12],
    [3, 9, 9],
    [4, 24, 24],
  ])("solves houses of %i rooms, %i receptacles and %i objects", (rooms, receptacles, objects) => {
    for (const split of splits) {
      for (let index = 0; index < dose(120); index++)
        expect(
          solve(start(split, index, { ...defaults, rooms, receptacles, objects })),
        ).toBeLessThan(20);
    }
  });

  it("solves the task from wherever random play has led", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...splits),
        fc.nat(999),
        fc.nat(),
        fc.integer({ min: 0, max: 120 }),
        fc.integer({ min: 1, max: 3 }),
        (split, index, seed, randomSteps, rooms) => {
          const state = start(split, index, {
            ...defaults,
            rooms,
            receptacles: 4 * rooms,
            objects: 6,
          });
          const random = createRandom(seed);
          for (let i = 0; i < randomSteps && !goalReached(state); i++)
            act(state, random.pick(admissible(state)));
          if (goalReached(state)) return;
          expect(solve(state)).toBeLessThanOrEqual(16);
        },
      ),
      { numRuns: dose(600) },
    );
  });

  it("takes as few steps as possible from the start", () => {
    for (const split of splits) {
      for (let index = 0; index < 12; index++) {
        const state = start(split, index, { ...defaults, rooms: 2, receptacles: 6, objects: 2 });
        const steps = solve(copyState(state));
        expect(fewestSteps(state, steps), state.house.goal).toBe(steps);
      }
    }
  });

  it("takes at most two more steps than needed after random actions", () => {
    let extra = 0;
    for (let index = 0; index < 30; index++) {
      const state = start("train", index, { ...defaults, rooms: 2, receptacles: 6, objects: 3 });
      const random = createRandom(index);
      for (let i = 0; i < 15 && !goalReached(state); i++)
        act(state, random.pick(admissible(state)));
      if (goalReached(state)) continue;
      const steps = solve(copyState(state));
      const waste = steps - fewestSteps(state, steps);
      expect(waste, `train/${index}`).toBeLessThanOrEqual(2);
      extra += waste;
    }
    expect(extra / 30).toBeLessThan(0.2);
  });
});

/** A state of a small house after some random steps. */
const stateAfterRandomSteps = fc
  .tuple(fc.constantFrom(...splits), fc.nat(999), fc.nat(), fc.integer({ min: 0, max: 40 }))
  .map(([split, index, seed, randomSteps]) => {
    const state = start(split, index, defaults);
    const random = createRandom(seed);
    for (let i = 0; i < randomSteps && !goalReached(state); i++)
      act(state, random.pick(admissible(state)));
    return state;
  })
  .filter((state) => !goalReached(state));

describe("the seeker", () => {
  it.each(splits)("solves the tasks of %s, in more steps than the expert", (split) => {
    let more = 0;
    const count = dose(600);
    for (let index = 0; index < count; index++)
      more +=
        solve(start(split, index, defaults), seekerCommand) - solve(start(split, index, defaults));
    expect(more / count).toBeGreaterThan(2);
  });

  it("solves the task from wherever random play has led", () => {
    fc.assert(
      fc.property(stateAfterRandomSteps, (state) => {
        expect(solve(state, seekerCommand)).toBeLessThanOrEqual(40);
      }),
    );
  });

  it("does not know where objects are that it has not seen", () => {
    let moved = 0;
    fc.assert(
      fc.property(stateAfterRandomSteps, fc.nat(), (state, seed) => {
        const hidden = (place: number) => place >= 0 && (state.seen & (1 << place)) === 0;
        const places = state.house.places.flatMap(({ kind }, place) =>
          kind.preposition !== undefined && hidden(place) ? [place] : [],
        );
        const other = copyState(state);
        const random = createRandom(seed);
        for (let object = 0; object < state.where.length; object++) {
          if (!hidden(state.where[object] as number)) continue;
          other.where[object] = random.pick(places);
          moved++;
        }
        expect(seekerCommand(other)).toBe(seekerCommand(state));
      }),
    );
    expect(moved).toBeGreaterThan(dose(100));
  });
});
