import { describe, expect, it } from "vitest";
import { dose } from "../../dose-testing.js";
import {
  families,
  generateHouse,
  type House,
  type HouseSettings,
  type Split,
  splitSizes,
} from "./house.js";
import { objectKinds, placeKinds, unusualRooms, usualRooms } from "./kinds.js";
import { describeStart, goalReached, initialState } from "./state.js";

const defaults: HouseSettings = { rooms: 2, receptacles: 8, objects: 8, families, seed: 0 };
const splits = Object.keys(splitSizes) as Split[];

function houses(split: Split, count: number = splitSizes[split], settings = defaults): House[] {
  return Array.from({ length: count }, (_, index) => generateHouse(split, index, settings));
}

const train = houses("train");
const unseen = houses("valid_unseen");
const tested = houses("test_unseen");

/** Which object kinds start at which place kinds. */
function placements(list: readonly House[]): Set<string> {
  const found = new Set<string>();
  for (const { objects, places, start } of list)
    objects.forEach(({ kind }, o) => {
      found.add(`${kind.name} ${places[start[o]!]!.kind.name}`);
    });
  return found;
}

/** Names of places and objects, and the words of rooms and goals. */
function names(list: readonly House[]): Set<string> {
  const found = new Set<string>();
  for (const house of list) {
    for (const { name } of house.places) found.add(name);
    for (const { name } of house.objects) found.add(name);
    for (const room of house.rooms) for (const word of room.split(" ")) found.add(word);
    for (const word of house.goal.split(" ")) found.add(word);
  }
  return found;
}

describe("the tables of kinds", () => {
  it("are sorted, so that commands made in their order are sorted", () => {
    for (const kinds of [placeKinds, objectKinds]) {
      const list = kinds.map((kind) => kind.name);
      expect(list).toEqual([...new Set(list)].sort());
    }
  });

  it("never count a place as both usual and unusual, and never put objects on a lamp", () => {
    for (const kind of objectKinds) {
      expect(kind.usual.some((weight) => weight > 0)).toBe(true);
      expect(kind.unusual.some((weight) => weight > 0)).toBe(true);
      placeKinds.forEach((place, p) => {
        expect(kind.usual[p]! * kind.unusual[p]!, `${kind.name} at ${place.name}`).toBe(0);
        expect(kind.seen[p]! * kind.unusual[p]!, `${kind.name} at ${place.name}`).toBe(0);
        const somewhere = kind.seen[p]! + kind.unusual[p]! > 0;
        expect(somewhere, `${kind.name} at ${place.name}`).toBe(place.preposition !== undefined);
      });
    }
  });

  it("name unusual rooms with words of usual ones", () => {
    const words = new Set(usualRooms.map((room) => room.name));
    for (const room of unusualRooms) {
      expect(words.has(room.name)).toBe(false);
      for (const word of room.name.split(" ")) expect(words).toContain(word);
    }
  });
});

describe("generated houses", () => {
  it("are the same for the same task, and different for another seed, split or number", () => {
    const text = (split: Split, index: number, seed: number) =>
      describeStart(generateHouse(split, index, { ...defaults, seed }));
    expect(text("train", 17, 0)).toBe(text("train", 17, 0));
    const different = [
      text("train", 17, 0),
      text("train", 17, 1),
      text("valid_seen", 17, 0),
      text("train", 18, 0),
    ];
    expect(new Set(different).size).toBe(4);
  });

  it.each(splits)("of %s have the requested size and a goal that is not reached yet", (split) => {
    for (const house of houses(split, dose(150))) {
      expect(house.rooms).toHaveLength(2);
      expect(house.places).toHaveLength(8);
      expect(house.objects).toHaveLength(8);
      expect(new Set(house.roomOf)).toEqual(new Set([0, 1]));
      expect(house.places.map((p) => p.id)).toEqual(
        [...new Set(house.places.map((p) => p.id))].sort((a, b) => a - b),
      );
      expect(house.objects.map((o) => o.id)).toEqual(
        [...new Set(house.objects.map((o) => o.id))].sort((a, b) => a - b),
      );
      const wanted = house.objects.filter((object) => object.kindIndex === house.goalObject);
      expect(wanted.length).toBeGreaterThanOrEqual(house.family === "pick_two" ? 2 : 1);
      const state = initialState(house, []);
      expect(goalReached(state)).toBe(false);
      for (const place of state.where) expect(house.places[place]!.kind.preposition).toBeDefined();
    }
  });

  it("cycle through the families", () => {
    const list = houses("train", 12).map((house) => house.family);
    expect(list).toEqual([...families, ...families]);
    const some = houses("train", 4, { ...defaults, families: ["heat", "look"] });
    expect(some.map((house) => house.family)).toEqual(["heat", "look", "heat", "look"]);
  });

  it("of valid_seen are new houses of the same room types and placements", () => {
    const known = new Set(train.map((house) => house.goal + describeStart(house)));
    const seen = houses("valid_seen");
    expect(seen.filter((house) => known.has(house.goal + describeStart(house)))).toHaveLength(0);
    expect(new Set(seen.flatMap((house) => house.rooms))).toEqual(
      new Set(usualRooms.map((room) => room.name)),
    );
  });

  it("of test_unseen are drawn like those of valid_unseen, but differ", () => {
    const known = new Set(unseen.map((house) => house.goal + describeStart(house)));
    expect(tested.filter((house) => known.has(house.goal + describeStart(house)))).toEqual([]);
    expect(new Set(tested.flatMap(({ rooms }) => rooms))).toEqual(
      new Set(unusualRooms.map(({ name }) => name)),
    );
  });

  it.each([
    ["valid_unseen", unseen],
    ["test_unseen", tested],
  ])("of %s have rooms and placements that train never has", (_, list) => {
    expect(
      list
        .flatMap((house) => house.rooms)
        .filter((room) => usualRooms.some((type) => type.name === room)),
    ).toEqual([]);
    const known = placements(train);
    expect([...placements(list)].filter((placement) => known.has(placement))).toEqual([]);
  });

  it("of valid_unseen have no name or word that train lacks", () => {
    const known = names(train);
    expect([...names(unseen)].filter((name) => !known.has(name))).toEqual([]);
  });

  it("mostly hold objects where they are usually found", () => {
    const fridge = placeKinds.findIndex((kind) => kind.name === "fridge");
    const eggs = train
      .filter(
        (house) =>
          house.places.some((place) => place.kindIndex === fridge) && house.goalPlace !== fridge,
      )
      .flatMap((house) =>
        house.objects.flatMap((object, o) =>
          object.kind.name === "egg" ? [house.places[house.start[o]!]!.kindIndex === fridge] : [],
        ),
      );
    expect(eggs.length).toBeGreaterThan(100);
    expect(eggs.filter((inFridge) => inFridge).length / eggs.length).toBeGreaterThan(0.5);
  });

  it.each([
    [1, 3, 2],
    [1, 3, 6],
    [1, 6, 12],
    [2, 6, 6],
    [2, 12, 24],
    [3, 9, 9],
    [4, 12, 24],
    [4, 24, 2],
    [4, 24, 24],
  ])("can be made with %i rooms, %i receptacles and %i objects", (rooms, receptacles, objects) => {
    for (const split of splits) {
      for (const house of houses(split, dose(60), { ...defaults, rooms, receptacles, objects }))
        expect([house.rooms.length, house.places.length, house.objects.length]).toEqual([
          rooms,
          receptacles,
          objects,
        ]);
    }
  });
});
