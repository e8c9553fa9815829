/** The house of the made-up games: the same rooms and furniture in each, and what may lie about. */

/** A way between two rooms, with the door in it if there is one. */
export interface Way {
  readonly from: string;
  readonly direction: Direction;
  readonly to: string;
  readonly door?: string;
}

export const OPPOSITE = { north: "south", south: "north", east: "west", west: "east" } as const;
export type Direction = keyof typeof OPPOSITE;
export const DIRECTIONS = Object.keys(OPPOSITE) as readonly Direction[];

/** The ways of the house. */
export const WAYS: readonly Way[] = [
  { from: "bedroom", direction: "east", to: "corridor", door: "oak door" },
  { from: "corridor", direction: "north", to: "bathroom" },
  { from: "corridor", direction: "south", to: "study", door: "iron door" },
  { from: "corridor", direction: "east", to: "parlour" },
  { from: "parlour", direction: "south", to: "kitchen" },
  { from: "parlour", direction: "east", to: "garden", door: "glass door" },
  { from: "kitchen", direction: "east", to: "pantry", door: "screen door" },
];

/** Furniture by type and room. */
export const FURNITURE: readonly (readonly [
  name: string,
  type: "b" | "c" | "s" | "v" | "w",
  room: string,
])[] = [
  ["bed", "s", "bedroom"],
  ["chest", "c", "bedroom"],
  ["basin", "s", "bathroom"],
  ["hamper", "c", "bathroom"],
  ["desk", "s", "study"],
  ["safe", "c", "study"],
  ["sofa", "s", "parlour"],
  ["cabinet", "c", "parlour"],
  ["stove", "v", "kitchen"],
  ["oven", "w", "kitchen"],
  ["table", "s", "kitchen"],
  ["fridge", "c", "kitchen"],
  ["cookbook", "b", "kitchen"],
  ["shelf", "s", "pantry"],
  ["crate", "c", "pantry"],
  ["barrel", "c", "garden"],
];

export const ROOMS: readonly string[] = [...new Set(WAYS.flatMap(({ from, to }) => [from, to]))];
/** Further names for the rooms of mazes. */
export const MORE_ROOMS: readonly string[] = ["attic", "cellar", "gallery", "library", "workshop"];
export const FOODS: readonly string[] = "apple carrot egg fish mushroom onion pepper potato".split(
  " ",
);
export const THINGS: readonly string[] = "bell candle clock coin flute lamp mirror ring".split(" ");
export const KEYS: readonly string[] = ["brass key", "copper key", "silver key"];
