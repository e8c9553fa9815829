/**
 * The speed of ALFWorld: random walks over all games of valid_seen on one thread, with text and
 * admissible commands at every step; loading; memory of 128 live environments; the expert's search.
 */

import type { Env } from "@pawl/core/envs/env.js";
import { createRandom } from "@pawl/core/random.js";
import { openAlfworld } from "@pawl/worlds/alfworld/alfworld.js";
import { findPlan } from "@pawl/worlds/alfworld/expert.js";
import {
  GAMES,
  OFFICIAL_DATA,
  officialDataThere,
  unpacked,
} from "@pawl/worlds/alfworld/fixtures/official.js";
import { loadGame, startPlay } from "@pawl/worlds/alfworld/game.js";

const STEPS = 40;
const ROUNDS = 3;
const LIVE = 128;
const SPLIT = "valid_seen";

/** The results, medians if several were measured. */
export interface AlfworldSpeed {
  readonly games: number;
  readonly steps_per_s: number;
  readonly reset_ms: number;
  readonly reset_ms_p95: number;
  readonly clone_us: number;
  readonly rss_128_mib: number;
  readonly rss_before_mib: number;
  readonly expert_solved_percent: number;
  readonly expert_ms: number;
  readonly expert_ms_max: number;
  readonly expert_mean_commands: number;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** Resident memory, after a garbage collection if the process was started with `--expose-gc`. */
function residentMib(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 2 ** 20;
}

/** Runs the benchmark; looks for the data next to the repository. */
export function main(): AlfworldSpeed {
  if (!officialDataThere) {
    throw new Error(`the official games are not at ${OFFICIAL_DATA}: there is nothing to measure`);
  }
  const data = unpacked(GAMES);
  const open = () => openAlfworld({ data });
  const before = residentMib();
  const memory = liveMemory(open);
  const tasks = open().tasks(SPLIT);
  const perSecond: number[] = [];
  const resets: number[] = [];
  const clones: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const environment = open(); // a new environment has no game cached, so every reset loads
    environment.task(tasks[0]!.id); // task lists are read once, not at a reset
    for (const [index, task] of tasks.entries()) {
      const env = environment.create() as Env;
      const random = createRandom(round * tasks.length + index);
      const start = performance.now();
      env.reset(task);
      const ready = performance.now();
      let steps = 0;
      for (; steps < STEPS; steps++) {
        if (env.step(random.pick(env.admissibleActions!())).done) {
          break;
        }
      }
      const end = performance.now();
      env.clone();
      clones.push((performance.now() - end) * 1e3);
      resets.push(ready - start);
      perSecond.push(steps / ((end - ready) / 1e3));
    }
  }
  const expert = searchAll(tasks.map(({ id }) => `${data}/json_2.1.1/${id}/game.tw-pddl`));
  return {
    games: tasks.length,
    steps_per_s: Math.round(quantile(perSecond, 0.5)),
    reset_ms: rounded(quantile(resets, 0.5), 2),
    reset_ms_p95: rounded(quantile(resets, 0.95), 2),
    clone_us: rounded(quantile(clones, 0.5), 1),
    rss_128_mib: Math.round(memory),
    rss_before_mib: Math.round(before),
    ...expert,
  };
}

/** Resident memory of the process with 128 games of the training split open at once. */
function liveMemory(open: () => ReturnType<typeof openAlfworld>): number {
  const environment = open();
  const tasks = environment.tasks("train");
  const random = createRandom(1);
  const envs = Array.from({ length: LIVE }, (_, index) => {
    const env = environment.create() as Env;
    env.reset(tasks[Math.floor((index * tasks.length) / LIVE)]!);
    for (let step = 0; step < STEPS; step++) {
      if (env.step(random.pick(env.admissibleActions!())).done) {
        break;
      }
    }
    return env;
  });
  const used = residentMib();
  if (envs.some((env) => env.goal === "")) {
    throw new Error("a live environment lost its goal");
  }
  return used;
}

/** Solves every game by search alone, without its walkthrough. */
function searchAll(files: readonly string[]) {
  const times: number[] = [];
  const lengths: number[] = [];
  for (const file of files) {
    const game = loadGame(file);
    const play = startPlay(game);
    const start = performance.now();
    const plan = findPlan(game.world, play.state) ?? [];
    times.push(performance.now() - start);
    for (const action of plan) {
      play.step(play.commandFor(action));
    }
    if (play.won) {
      lengths.push(plan.length);
    }
  }
  return {
    expert_solved_percent: rounded((100 * lengths.length) / files.length, 1),
    expert_ms: rounded(quantile(times, 0.5), 1),
    expert_ms_max: rounded(Math.max(...times), 1),
    expert_mean_commands: rounded(lengths.reduce((a, b) => a + b, 0) / lengths.length, 2),
  };
}
