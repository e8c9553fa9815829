/** Surface noise: words in observations that no model can predict and no action depends on. */
import { createRandom, mixSeed } from "../../random.js";
import type { House } from "./house.js";

/** Which noise observations carry. */
export const noiseKinds = ["off", "ids", "brands", "all"] as const;
export type Noise = (typeof noiseKinds)[number];

const firstSyllables = [
  "Bel",
  "Dor",
  "Fen",
  "Gal",
  "Jun",
  "Kor",
  "Lum",
  "Mer",
  "Nov",
  "Pel",
  "Ros",
  "Tav",
];
const lastSyllables = [
  "ano",
  "dex",
  "ella",
  "go",
  "ira",
  "lux",
  "mo",
  "nix",
  "ora",
  "tek",
  "una",
  "vio",
];

/** The number of different ids, so that a word-level vocabulary of them stays finite. */
const idCount = 1_000;

/**
 * What observations call each object of a house in one episode: the name alone, or with a
 * brand-like word before it (one of 144) and an id after it (#0 to #999), both drawn from the
 * episode's seed.
 */
export function drawLabels(house: House, noise: Noise, seed: number): readonly string[] {
  if (noise === "off") return house.objects.map((object) => object.name);
  const random = createRandom(mixSeed("household noise", seed));
  return house.objects.map(({ name }) => {
    const brand = `${random.pick(firstSyllables)}${random.pick(lastSyllables)}`;
    const id = random.int(idCount);
    if (noise === "ids") return `${name} #${id}`;
    return noise === "brands" ? `${brand} ${name}` : `${brand} ${name} #${id}`;
  });
}
