import { describe, expect, it } from "vitest";
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

/** Which object kinds start at which place kinds. */
function placements(list: readonly House[]): Set<string> {
  return new Set(
    list.flatMap((house) =>
      house.objects.map(
        (object, o) => `${object.kind.name} ${house.places[house.start[o]!]!.kind.name}`,
      ),
    ),
  );
}

function names(list: readonly House[]): Set<string> {
  return new Set(
    list.flatMap((house) => [
      ...house.places.map((place) => place.name),
      ...house.objects.map((object) => object.name),
      ...house.rooms.flatMap((room) => room.split(" ")),
      ...house.goal.split(/[ .]/),
    ]),
  );
}

describe("the tables of kinds", () => {
  it("are sorted, so that commands made in their order are sorted", () => {
    for (const kinds of [placeKinds, objectKinds]) {
      const list = kinds.map((kind) => kind.name);
      expect(list).toEqual([...new Set(list)].sort());
    }
  });

  it("never count a place as both usual and unusual, and never put things on a lamp", () => {
    for (const kind of objectKinds) {
      expect(kind.usual.some((weight) => weight > 0)).toBe(true);
      expect(kind.unusual.some((weight) => weight > 0)).toBe(true);
      placeKinds.forEach((place, p) => {
        expect(kind.usual[p]! * kind.unusual[p]!, `${kind.name} at ${place.name}`).toBe(0);
        const somewhere = kind.usual[p]! + kind.unusual[p]! > 0;
        if (place.preposition === undefined) expect(somewhere).toBe(false);
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
  it("are the same for the same task and others for another seed, split or number", () => {
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

  it.each(splits)("of %s have the asked size and a goal that is not reached yet", (split) => {
    for (const house of houses(split, 600)) {
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

  it("go through the families in turn", () => {
    const list = houses("train", 12).map((house) => house.family);
    expect(list).toEqual([...families, ...families]);
    const some = houses("train", 4, { ...defaults, families: ["heat", "look"] });
    expect(some.map((house) => house.family)).toEqual(["heat", "look", "heat", "look"]);
  });

  it("of valid_seen are new houses of the same room types and placements", () => {
    const known = new Set(houses("train").map((house) => house.goal + describeStart(house)));
    const seen = houses("valid_seen");
    expect(seen.filter((house) => known.has(house.goal + describeStart(house)))).toHaveLength(0);
    expect(new Set(seen.flatMap((house) => house.rooms))).toEqual(
      new Set(usualRooms.map((room) => room.name)),
    );
  });

  it("of valid_unseen have rooms and placements that train never has", () => {
    const train = houses("train");
    const unseen = houses("valid_unseen");
    expect(
      unseen
        .flatMap((house) => house.rooms)
        .filter((room) => usualRooms.some((type) => type.name === room)),
    ).toEqual([]);
    const known = placements(train);
    expect([...placements(unseen)].filter((placement) => known.has(placement))).toEqual([]);
  });

  it.each([
    [1, 4, 4],
    [2, 8, 8],
    [3, 9, 9],
  ])("of valid_unseen have no name that train lacks (%i rooms)", (rooms, receptacles, objects) => {
    const settings = { ...defaults, rooms, receptacles, objects };
    const words = names(houses("train", splitSizes.train, settings));
    const unseen = names(houses("valid_unseen", splitSizes.valid_unseen, settings));
    expect([...unseen].filter((name) => !words.has(name))).toEqual([]);
  });

  it("mostly hold things where they are usually found", () => {
    const fridge = placeKinds.findIndex((kind) => kind.name === "fridge");
    const eggs = houses("train", 3000)
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
      for (const house of houses(split, 120, { ...defaults, rooms, receptacles, objects })) {
        expect([house.rooms.length, house.places.length, house.objects.length]).toEqual([
          rooms,
          receptacles,
          objects,
        ]);
      }
    }
  });
});
