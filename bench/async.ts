/**
 * Slow worlds: episodes that advance together, compared with the same ones at their own pace.
 *
 *   npm run bench -- async [--scale NUMBER] [--episodes 256] [--rows 256] [--updates 3]
 *                          [--steps 10] [--straggler-seconds 1]
 *
 * The worlds are rooms of the household whose answers take 0.05 to 5 seconds, simulated, with a
 * heavy tail (Pareto, exponent 1.1: half of them take less than 0.1 s, one of 160 takes 5 s), times
 * `--scale`; so is the time of stragglers. By default the scale is such that the longest answer
 * takes three times as long as the engine does for one turn of all episodes, on any machine: faster
 * worlds would not hold it up, and slower ones would leave it idle at any pace. Both paces see the same delays at the same steps. The model is the preset `tiny` with
 * one thread; it has not learnt anything, so every response has all its tokens.
 *
 *   busy       share of the time in which the engine sampled
 *   rows       rows per call of the engine: small batches keep it busy, too, but do less
 *   seconds    for all updates; `speedup` is their ratio
 *   processor  seconds of the processor per row, which other work on the machine distorts less
 *   carried    own pace, with stragglers carried over; those of the last update are not counted
 *
 *   train      seconds per update of training in these worlds, over the whole of a short run: together,
 *              at their own pace, and with `overlap`; `overlapped` is how much of a rollout was hidden
 *
 * `same` is the share of episodes with the same actions at both paces: what an episode contains
 * does not depend on who is sampled with it, but for rounding at near ties.
 */
import "@pawl/models/no-telemetry.js";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { ActingEngine } from "@pawl/core/engine/engine.js";
import type { Env, Environment, RemoteEnv } from "@pawl/core/envs/env.js";
import { housePrompt } from "@pawl/core/envs/household/prompt.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { Group } from "@pawl/core/rollout/episode.js";
import type { PaceOptions } from "@pawl/core/rollout/pace.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { createRollouts } from "@pawl/core/rollout/rollouts.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { trainRl } from "@pawl/core/train/rl.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { trainConfig } from "@pawl/training/config.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { machine } from "./peer/side.js";

const SHORTEST = 0.05;
const LONGEST = 5;
const EXPONENT = 1.1;
const GROUP_SIZE = 8;
/** The longest answer, in times that the engine takes for all episodes. */
const TURNS_PER_LONGEST = 3;

/** The seconds that an answer takes. */
function delay(seed: number, step: number): number {
  const left = 1 - createRandom(mixSeed(seed, "delay", step)).next();
  return Math.min(LONGEST, SHORTEST * left ** (-1 / EXPONENT));
}

/** The environment with worlds that answer later. */
function slow(environment: Environment, scale: () => number): Environment {
  const later = (world: Env): RemoteEnv => {
    let seed = 0;
    let steps = 0;
    const pause = (): Promise<void> => wait(1000 * scale() * delay(seed, steps++));
    return {
      get goal() {
        return world.goal;
      },
      get taskType() {
        return world.taskType;
      },
      async reset(task, given = 0) {
        seed = given;
        steps = 0;
        await pause();
        return world.reset(task, given);
      },
      async step(action) {
        await pause();
        return world.step(action);
      },
      ...(world.admissibleActions && { admissibleActions: () => world.admissibleActions!() }),
      close: async () => undefined,
    };
  };
  return { ...environment, create: () => later(environment.create() as Env) };
}

/** Of this process so far, with all its threads. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** The engine, and how it is used. */
function timed(engine: ActingEngine) {
  let [busy, rows, calls] = [0, 0, 0];
  const sample: ActingEngine["sample"] = async (requests) => {
    const started = performance.now();
    const samples = await engine.sample(requests);
    busy += (performance.now() - started) / 1000;
    rows += requests.length;
    calls += 1;
    return samples;
  };
  const before = processorSeconds();
  const used = (seconds: number) => ({
    ...{ busy: busy / seconds, rows: rows / calls, perCall: busy / calls, seconds },
    processor: (processorSeconds() - before) / rows,
  });
  return { engine: { capabilities: engine.capabilities, sample }, used };
}

/** How updates are played. */
interface Pace {
  one(update: number): Promise<readonly Group[]>;
  end?(): Promise<void>;
}

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

const actionsOf = (groups: readonly Group[]): readonly string[] =>
  groups.flatMap(({ episodes }) =>
    episodes.map(({ steps }) => JSON.stringify(steps.map(({ action }) => action))),
  );

export async function main(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      scale: { type: "string" },
      episodes: { type: "string", default: "256" },
      rows: { type: "string", default: "256" },
      updates: { type: "string", default: "3" },
      steps: { type: "string", default: "10" },
      "straggler-seconds": { type: "string", default: "1" },
    },
  });
  const [episodes, rows, updates, stepLimit, stragglers] = [
    values.episodes,
    values.rows,
    values.updates,
    values.steps,
    values["straggler-seconds"],
  ].map(Number) as [number, number, number, number, number];
  const rooms = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
  let scale = 0;
  const environment = slow(rooms, () => scale);
  const style = promptStyle(housePrompt, { style: "compact", history: "all" });
  const tokenizer = buildTokenizer(await worldTexts(rooms, style));
  const { vocabularySize } = tokenizer;
  const engine = await createEmbeddedEngine({
    model: { preset: "tiny", vocabularySize, maxContext: 1024 },
    threads: 1,
  });
  const sampling = { maxTokens: 4, temperature: 1 };
  const policyOf = (acting: ActingEngine, batch?: number) =>
    enginePolicy({ engine: acting, tokenizer, style, sampling, ...(batch && { batch }) });
  const all = rooms.tasks("train");
  const plan = (update: number, groups: number) => ({
    ...{ environment, style, stepLimit, groupSize: GROUP_SIZE, seed: update },
    tasks: Array.from({ length: groups }, (_, i) => all[(update * groups + i) % all.length]!),
  });
  const groups = episodes / GROUP_SIZE;

  /** All updates of a pace, and how the engine was used. */
  const measure = async (play: (acting: ActingEngine) => Pace) => {
    const { engine: acting, used } = timed(engine);
    const pace = play(acting);
    const played: Group[] = [];
    const started = performance.now();
    for (let update = 0; update < updates; update++) played.push(...(await pace.one(update)));
    const numbers = used((performance.now() - started) / 1000);
    await pace.end?.();
    return { ...numbers, played };
  };
  const lockstep =
    (worlds: Environment, count: number) =>
    (acting: ActingEngine): Pace => ({
      one: (update) =>
        rollout({ ...plan(update, count), environment: worlds, policy: policyOf(acting) }),
    });
  const own =
    (options: Omit<PaceOptions, "pace" | "rows">) =>
    (acting: ActingEngine): Pace => {
      const rollouts = createRollouts(acting, { pace: "own", rows, ...options });
      const policy = policyOf(rollouts.engine, rollouts.batch);
      return {
        one: async (update: number) =>
          (await rollouts.play({ ...plan(update, groups - rollouts.carried), policy })).groups,
        end: () => rollouts.end(),
      };
    };
  /** Trains for a few updates; what is measured is the time, not what is learnt. */
  const trained = async (changes: object) => {
    const config = trainConfig(findEnvKind("household")).parse({
      ...{ groups: groups / 4, groupSize: GROUP_SIZE, stepLimit, ...sampling },
      ...{ updates: updates + 2, objective: { kl: 0 }, gradients: { every: 0 }, ...changes },
    });
    const overlapped: number[] = [];
    const started = performance.now();
    await trainRl(
      {
        ...{ engine, environment, tokenizer, style },
        ...{ firstUpdate: 0, optimizerSteps: 0 },
        onEpisodes: async () => undefined,
        onUpdate: async (done) => void overlapped.push(done.overlapped ?? 0),
      },
      config,
    );
    const perUpdate = (performance.now() - started) / 1000 / overlapped.length;
    return { perUpdate, overlapped: mean(overlapped) };
  };
  try {
    // Graphs are compiled before anything is measured.
    await measure(lockstep(rooms, 2));
    const { perCall } = await measure(lockstep(rooms, groups));
    scale = Number(values.scale ?? (TURNS_PER_LONGEST * perCall) / LONGEST);
    const stragglerSeconds = scale * stragglers;
    const together = await measure(lockstep(environment, groups));
    const apart = await measure(own({}));
    const carried = await measure(own({ stragglers: "carry", stragglerSeconds }));
    await trained({ updates: 1 });
    const train = {
      together: await trained({}),
      own: await trained({ rollout: { pace: "own" } }),
      ahead: await trained({ rollout: { pace: "own" }, overlap: 1 }),
    };
    const [a, b] = [actionsOf(together.played), actionsOf(apart.played)];
    const same = a.filter((actions, i) => actions === b[i]).length / a.length;
    const shown = ({ played, ...numbers }: typeof together) => {
      const count = played.reduce((sum, group) => sum + group.episodes.length, 0);
      return { ...numbers, episodes: count, episodesPerSecond: count / numbers.seconds };
    };
    return {
      ...{ scale, rows, updates, stepLimit, same },
      together: shown(together),
      own: shown(apart),
      carried: shown(carried),
      speedup: together.seconds / apart.seconds,
      train,
      machine: machine(),
    };
  } finally {
    await engine.dispose();
  }
}
