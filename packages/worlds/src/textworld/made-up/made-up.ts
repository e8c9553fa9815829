/** The made-up games as lists of tasks: a game is drawn from its split and number. */

import type { Task } from "@pawl/core/envs/env.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import { type Family, families, familyNames } from "./families.js";
import type { MadeGame } from "./made-game.js";

/** What `data` is called for these games. */
export const MADE_UP = "made-up";

/** Sizes of the splits, as in Word-to-World; `valid` is for choosing settings. */
export const madeUpSplits: Readonly<Record<string, number>> = {
  train: 2500,
  valid: 200,
  test: 200,
};

/** The most points that a game has. */
export const MOST_POINTS = 3;

/** The tasks of a split; families take turns. */
export function madeUpTasks(split: string): readonly Task[] {
  return Array.from({ length: madeUpSplits[split]! }, (_, index) => {
    const type = familyNames[index % familyNames.length]!;
    return { id: `${split}/${type}-${index}`, split, type };
  });
}

/** The game of a task. */
export function madeUpGame({ id, type }: Task): MadeGame {
  return families[type as Family](createRandom(mixSeed(MADE_UP, id)));
}
