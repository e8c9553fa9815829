/**
 * Our side of ../textworld.ts: plays games with the built package, as users run it. Reads one JSON
 * command per line and answers with one JSON line each, as original-textworld.py does; `{memory}`
 * and `{clone}` ask for other measurements.
 */
import { createInterface } from "node:readline";
import { createRandom } from "../../dist/packages/core/src/random.js";
import { loadGame } from "../../dist/packages/worlds/src/textworld/game.js";
import { startPlay } from "../../dist/packages/worlds/src/textworld/play.js";
import { textworld } from "../../dist/packages/worlds/src/textworld/textworld.js";

const LIVE = 128;
const LIVE_STEPS = 20;
const CLONES = 2000;
const plays = new Map();

function play({ game, all, commands, rounds }) {
  const key = `${game} ${all}`;
  if (!plays.has(key)) plays.set(key, startPlay(loadGame(game), { style: "plain", tracked: all }));
  const { start, step, game: loaded } = plays.get(key);
  const begin = performance.now();
  const used = process.cpuUsage();
  let steps = 0;
  for (let round = 0; round < rounds; round++) {
    let moment = start;
    for (const command of commands) {
      moment = step(moment, command);
      loaded.tracker.commands(moment.facts);
      steps++;
      if (moment.won || moment.lost) break;
    }
  }
  const { user, system } = process.cpuUsage(used);
  return { steps, seconds: (performance.now() - begin) / 1000, processor: (user + system) / 1e6 };
}

/** Resident memory of this process with 128 games being played. */
function memory({ data }) {
  const resident = () => {
    globalThis.gc?.();
    return Math.round(process.memoryUsage.rss() / 2 ** 20);
  };
  const before = resident();
  const environment = textworld.open(textworld.options.parse({ data }));
  const tasks = environment.splits.flatMap((split) => environment.tasks(split));
  const random = createRandom(1);
  const envs = Array.from({ length: LIVE }, (_, index) => {
    const env = environment.create();
    env.reset(tasks[index % tasks.length]);
    return env;
  });
  // In lock-step, as in a rollout.
  let live = envs;
  for (let step = 0; step < LIVE_STEPS; step++)
    live = live.filter((env) => !env.step(random.pick(env.admissibleActions())).done);
  const after = resident();
  return {
    before,
    after,
    goals: envs.filter((env) => env.goal !== "").length,
    games: tasks.length,
  };
}

/** The median time of a clone in the middle of an episode, in microseconds. */
function clone({ data }) {
  const environment = textworld.open(textworld.options.parse({ data }));
  const env = environment.create();
  env.reset(environment.tasks("train")[0]);
  env.step("look");
  const times = Array.from({ length: CLONES }, () => {
    const start = performance.now();
    env.clone();
    return (performance.now() - start) * 1000;
  });
  return { microseconds: times.sort((left, right) => left - right)[CLONES >> 1] };
}

const does = { play, memory, clone };
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(does[asked.do](asked))}\n`);
}
