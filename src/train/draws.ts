/** What is sampled for an update: its seed and its tasks. */
import type { Environment, Task } from "../envs/env.js";
import { createRandom, mixSeed } from "../random.js";

/** The seed of everything that is sampled in an update. */
export function updateSeed({ seed }: { readonly seed: number }, index: number): number {
  return mixSeed(seed, "update", index);
}

/** The tasks of an update: sampled without replacement, independently for each update. */
export function drawTasks(
  environment: Environment,
  options: { readonly split: string; readonly groups: number },
  seed: number,
): readonly Task[] {
  const all = environment.tasks(options.split);
  const random = createRandom(mixSeed(seed, "tasks"));
  const drawn = new Set<number>();
  while (drawn.size < Math.min(options.groups, all.length)) drawn.add(random.int(all.length));
  return [...drawn].map((at) => all[at]!);
}
