/** What is sampled for an update: its seed and its tasks. */
import type { Environment, Task } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";

/** The seed of everything that is sampled in an update. */
export function updateSeed({ seed }: { readonly seed: number }, index: number): number {
  return mixSeed(seed, "update", index);
}

/**
 * The tasks of an update, sampled independently for each update: none is repeated before all were
 * drawn.
 */
export function drawTasks(
  environment: Environment,
  options: { readonly split: string; readonly groups: number },
  seed: number,
): readonly Task[] {
  const all = environment.tasks(options.split);
  const random = createRandom(mixSeed(seed, "tasks"));
  const drawn: number[] = [];
  while (drawn.length < options.groups && all.length > 0) {
    const size = Math.min(options.groups - drawn.length, all.length);
    const round = new Set<number>();
    while (round.size < size) round.add(random.int(all.length));
    drawn.push(...round);
  }
  return drawn.map((at) => all[at]!);
}
