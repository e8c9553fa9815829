import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { dose } from "../../dose-testing.js";
import { createRandom } from "../../random.js";
import { act, admissible } from "./actions.js";
import { families, generateHouse, type House } from "./house.js";
import { objectKinds, objectName, placeKinds, placeName } from "./kinds.js";
import {
  copyState,
  describeHand,
  describeHouse,
  describeStart,
  goalReached,
  type HouseState,
  initialState,
  marks,
} from "./state.js";

function placeKind(name: string): number {
  return placeKinds.findIndex((kind) => kind.name === name);
}

function objectKind(name: string): number {
  return objectKinds.findIndex((kind) => kind.name === name);
}

/** A house laid out by hand: places by room, objects by place. */
function layOut(
  rooms: Readonly<Record<string, string>>,
  objects: Readonly<Record<string, string>>,
  goal: Pick<House, "family"> & { object: string; place?: string },
): House {
  const places = Object.values(rooms)
    .flatMap((list, room) => list.split(", ").map((name) => ({ name, room })))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const things = Object.entries(objects).sort(([a], [b]) => (a < b ? -1 : 1));
  const [kindOf, numberOf] = [
    (name: string) => name.split(" ")[0]!,
    (name: string) => Number(name.split(" ")[1]),
  ];
  return {
    family: goal.family,
    goal: "…",
    rooms: Object.keys(rooms),
    places: places.map(({ name }) => placeName(placeKind(kindOf(name)), numberOf(name))),
    roomOf: places.map(({ room }) => room),
    objects: things.map(([name]) => objectName(objectKind(kindOf(name)), numberOf(name))),
    start: Int8Array.from(things, ([, place]) => places.findIndex((p) => p.name === place)),
    open: 0,
    goalObject: objectKind(goal.object),
    goalPlace: goal.place === undefined ? -1 : placeKind(goal.place),
  };
}

const rooms = {
  kitchen: "counter 1, fridge 1, microwave 1, sink 1, stove 1",
  bedroom: "desk 1, drawer 1, lamp 1",
};
const objects = {
  "apple 1": "counter 1",
  "book 1": "desk 1",
  "egg 1": "fridge 1",
  "mug 1": "counter 1",
  "mug 2": "drawer 1",
};

function startOf(house: House): HouseState {
  return initialState(
    house,
    house.objects.map((object) => object.name),
  );
}

describe("actions", () => {
  let state: HouseState;
  beforeEach(() => {
    state = startOf(layOut(rooms, objects, { family: "heat", object: "apple", place: "desk" }));
  });

  /** Carries out commands and returns the last observation. */
  function run(...commands: string[]): string {
    let text = "";
    for (const command of commands) {
      const outcome = act(state, command);
      expect(outcome.valid, `${command}: ${outcome.text}`).toBe(true);
      text = outcome.text;
    }
    return text;
  }

  it("show a place's contents on arrival, unless it is closed", () => {
    expect(run("go to counter 1")).toBe("On counter 1: apple 1, mug 1.");
    expect(run("go to sink 1")).toBe("In sink 1: nothing.");
    expect(run("go to fridge 1")).toBe("The fridge 1 is closed.");
    expect(run("open fridge 1")).toBe("The fridge 1 is open now. In fridge 1: egg 1.");
    expect(run("close fridge 1")).toBe("The fridge 1 is closed now.");
  });

  it("reach another room by way of its door", () => {
    expect(run("look")).toBe(
      "You are in the kitchen: counter 1, fridge 1, microwave 1, sink 1, stove 1. In the bedroom: desk 1, drawer 1, lamp 1.",
    );
    expect(run("go to desk 1")).toBe("You walk into the bedroom: desk 1, drawer 1, lamp 1.");
    expect(state.at).toBe(-1);
    expect(run("go to desk 1")).toBe("On desk 1: book 1.");
    expect(describeHouse(state)).toMatch(/^You are in the bedroom: .* In the kitchen: /);
  });

  it("move, heat and deliver an object to its goal", () => {
    expect(run("go to counter 1", "take apple 1 from counter 1")).toBe("Taken from counter 1.");
    expect(describeHand(state)).toBe("You hold apple 1.");
    expect(run("go to stove 1", "heat apple 1 on stove 1")).toBe("The apple 1 is hot now.");
    expect(describeHand(state)).toBe("You hold hot apple 1.");
    run("go to desk 1", "go to desk 1");
    expect(goalReached(state)).toBe(false);
    expect(run("put apple 1 on desk 1")).toBe("Now on desk 1: hot apple 1, book 1.");
    expect(describeHand(state)).toBe("You hold nothing.");
    expect(goalReached(state)).toBe(true);
  });

  it("do not reach a goal of heating with a cold object", () => {
    run(
      "go to counter 1",
      "take apple 1 from counter 1",
      "go to stove 1",
      "heat apple 1 on stove 1",
    );
    run("go to fridge 1", "open fridge 1");
    expect(run("cool apple 1 in fridge 1")).toBe("The apple 1 is cold now.");
    run("go to sink 1", "wash apple 1 in sink 1");
    expect(describeHand(state)).toBe("You hold clean cold apple 1.");
    run("go to desk 1", "go to desk 1", "put apple 1 on desk 1");
    expect(goalReached(state)).toBe(false);
  });

  it("inspect only what is in hand, beside a lamp that is on", () => {
    state = startOf(layOut(rooms, objects, { family: "look", object: "book" }));
    run("go to desk 1", "go to desk 1", "take book 1 from desk 1", "go to lamp 1");
    expect(act(state, "inspect book 1")).toEqual({ valid: false, text: "The lamp 1 is off." });
    expect(run("switch on lamp 1")).toBe("The lamp 1 is on now.");
    expect(goalReached(state)).toBe(false);
    expect(run("inspect book 1")).toBe("You inspect book 1 beside lamp 1.");
    expect(goalReached(state)).toBe(true);
  });

  it("reach a goal of two with both objects only", () => {
    state = startOf(layOut(rooms, objects, { family: "pick_two", object: "mug", place: "sink" }));
    run("go to counter 1", "take mug 1 from counter 1", "go to sink 1", "put mug 1 in sink 1");
    expect(goalReached(state)).toBe(false);
    run("go to drawer 1", "go to drawer 1", "open drawer 1", "take mug 2 from drawer 1");
    run("go to sink 1", "go to sink 1", "put mug 2 in sink 1");
    expect(goalReached(state)).toBe(true);
  });

  const hold = (name: string) => ["go to counter 1", `take ${name} from counter 1`];
  it.each<[string, string[], string, string]>([
    ["an unknown verb", [], "dance", "Unknown command."],
    ["no command", [], "", "Unknown command."],
    ["an unknown kind", [], "go to castle 1", "Unknown command."],
    ["an unknown number", [], "go to fridge 12", "Unknown command."],
    ["words left out", [], "take apple 1", "Unknown command."],
    ["words too many", [], "look at everything", "Unknown command."],
    ["a place the house lacks", [], "go to fridge 2", "There is no fridge 2 here."],
    ["opening a place the house lacks", [], "open sofa 1", "There is no sofa 1 here."],
    ["where one is", ["go to sink 1"], "go to sink 1", "You are already at sink 1."],
    ["opening from afar", [], "open fridge 1", "You are not at fridge 1."],
    ["taking from afar", [], "take apple 1 from counter 1", "You are not at counter 1."],
    [
      "opening twice",
      ["go to fridge 1", "open fridge 1"],
      "open fridge 1",
      "The fridge 1 is already open.",
    ],
    ["closing twice", ["go to fridge 1"], "close fridge 1", "The fridge 1 is already closed."],
    ["opening a table top", ["go to counter 1"], "open counter 1", "The counter 1 has no door."],
    [
      "taking from a closed place",
      ["go to fridge 1"],
      "take egg 1 from fridge 1",
      "The fridge 1 is closed.",
    ],
    [
      "taking what is elsewhere",
      ["go to counter 1"],
      "take egg 1 from counter 1",
      "There is no egg 1 here.",
    ],
    [
      "taking what is nowhere",
      ["go to counter 1"],
      "take apple 2 from counter 1",
      "There is no apple 2 here.",
    ],
    ["taking two", hold("mug 1"), "take apple 1 from counter 1", "Your hands are full."],
    [
      "putting what one has not",
      ["go to counter 1"],
      "put egg 1 on counter 1",
      "You do not hold egg 1.",
    ],
    [
      "putting into a closed place",
      [...hold("mug 1"), "go to fridge 1"],
      "put mug 1 in fridge 1",
      "The fridge 1 is closed.",
    ],
    [
      "putting on what is for putting in",
      [...hold("mug 1"), "go to sink 1"],
      "put mug 1 on sink 1",
      "Things go in sink 1.",
    ],
    [
      "putting on a lamp",
      [...hold("mug 1"), "go to lamp 1", "go to lamp 1"],
      "put mug 1 on lamp 1",
      "The lamp 1 takes nothing.",
    ],
    [
      "heating in a closed place",
      [...hold("mug 1"), "go to microwave 1"],
      "heat mug 1 in microwave 1",
      "The microwave 1 is closed.",
    ],
    [
      "heating in a sink",
      [...hold("mug 1"), "go to sink 1"],
      "heat mug 1 in sink 1",
      "You cannot heat things in sink 1.",
    ],
    [
      "heating twice",
      [...hold("mug 1"), "go to stove 1", "heat mug 1 on stove 1"],
      "heat mug 1 on stove 1",
      "The mug 1 is already hot.",
    ],
    [
      "heating what one has not",
      ["go to stove 1"],
      "heat mug 1 on stove 1",
      "You do not hold mug 1.",
    ],
    [
      "washing a book",
      ["go to desk 1", "go to desk 1", "take book 1 from desk 1", "go to sink 1", "go to sink 1"],
      "wash book 1 in sink 1",
      "You cannot wash book 1.",
    ],
    [
      "switching a fridge on",
      ["go to fridge 1"],
      "switch on fridge 1",
      "The fridge 1 has no switch.",
    ],
    [
      "switching off what is off",
      ["go to lamp 1", "go to lamp 1"],
      "switch off lamp 1",
      "The lamp 1 is already off.",
    ],
    ["inspecting without a lamp", hold("mug 1"), "inspect mug 1", "There is no lamp here."],
    ["inspecting what one has not", [], "inspect book 1", "You do not hold book 1."],
  ])("reject %s with a reason and change nothing", (_, before, command, reason) => {
    run(...before);
    const copy = copyState(state);
    expect(act(state, command)).toEqual({ valid: false, text: reason });
    expect(state).toEqual(copy);
  });

  it("tell a world model where everything is and what is closed", () => {
    expect(describeStart(state.house)).toBe(
      "On counter 1: apple 1, mug 1. On desk 1: book 1. The drawer 1 is closed. In drawer 1: mug 2. " +
        "The fridge 1 is closed. In fridge 1: egg 1. The lamp 1 is off. " +
        "The microwave 1 is closed. In microwave 1: nothing. In sink 1: nothing. On stove 1: nothing.",
    );
  });
});

/** Every command that the vocabulary allows in a house, possible or not. */
function allCommands(house: House): string[] {
  const single = house.places.flatMap(({ name }) =>
    ["go to", "open", "close", "switch on", "switch off"].map((verb) => `${verb} ${name}`),
  );
  const double = house.objects.flatMap((object) =>
    house.places.flatMap((place) => [
      `take ${object.name} from ${place.name}`,
      ...["put", "wash", "heat", "cool"].flatMap((verb) =>
        ["in", "on"].map((way) => `${verb} ${object.name} ${way} ${place.name}`),
      ),
    ]),
  );
  return ["look", ...single, ...double, ...house.objects.map(({ name }) => `inspect ${name}`)];
}

describe("any sequence of actions", () => {
  const anyWalk = fc.record({
    index: fc.nat(999),
    seed: fc.nat(),
    steps: fc.integer({ min: 1, max: 80 }),
  });
  const hotAndCold = marks.heat | marks.cool;
  const settings = { rooms: 2, receptacles: 8, objects: 8, families, seed: 0 };

  it("keeps every object in one place, at most one in hand, and the hand in view", () => {
    fc.assert(
      fc.property(anyWalk, ({ index, seed, steps }) => {
        const state = startOf(generateHouse("train", index, settings));
        const random = createRandom(seed);
        for (let i = 0; i < steps; i++) {
          const command = random.pick(admissible(state));
          expect(act(state, command).valid, command).toBe(true);
          const { house, where, held } = state;
          const inHand = [...where.keys()].filter((o) => where[o] === -1);
          expect(inHand).toEqual(held < 0 ? [] : [held]);
          const kept = where.every((place) => place < 0 || house.places[place]?.kind.preposition);
          expect(kept).toBe(true);
          const name = held < 0 ? "nothing" : house.objects[held]!.name;
          expect(describeHand(state).endsWith(` ${name}.`)).toBe(true);
          expect(state.at < 0 || house.roomOf[state.at] === state.room).toBe(true);
          expect(state.marked.some((mark) => (mark & hotAndCold) === hotAndCold)).toBe(false);
        }
      }),
      { numRuns: dose(60) },
    );
  });

  it("shows all of an accessible place and nothing of a closed one", () => {
    fc.assert(
      fc.property(anyWalk, ({ index, seed, steps }) => {
        const state = startOf(generateHouse("valid_unseen", index, settings));
        const random = createRandom(seed);
        for (let i = 0; i < steps; i++) {
          const command = random.pick(admissible(state));
          const { text } = act(state, command);
          if (!/^(go to|open|put)/.test(command) || state.at < 0) continue;
          const closed = / is closed\.$/.test(text);
          const mentioned = state.house.objects.filter(({ name }) => text.includes(name));
          const there = state.house.objects.filter((_, o) => state.where[o] === state.at);
          expect(mentioned, command).toEqual(closed ? [] : there);
        }
      }),
      { numRuns: dose(100) },
    );
  });

  it("accepts exactly the admissible commands; an invalid one changes nothing", () => {
    fc.assert(
      fc.property(anyWalk, ({ index, seed, steps }) => {
        const state = startOf(generateHouse("train", index, settings));
        const random = createRandom(seed);
        for (let i = 0; i < steps; i++) act(state, random.pick(admissible(state)));
        const changed: string[] = [];
        const accepted = allCommands(state.house).filter((command) => {
          const copy = copyState(state);
          const { valid } = act(copy, command);
          if (!valid && !isDeepStrictEqual(copy, state)) changed.push(command);
          return valid;
        });
        expect(admissible(state)).toEqual(accepted.sort());
        expect(changed).toEqual([]);
      }),
      { numRuns: 15 },
    );
  });
});
