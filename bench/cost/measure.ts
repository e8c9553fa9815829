/**
 * Times of the embedded engine for some tasks, on this machine. Weights and tokens are random. Other
 * programs may run here and slow the memory too, so processor time is taken as well, and the least counts.
 */
import { loadavg } from "node:os";
import { createEmbeddedEngine } from "../../src/engine/embedded/embedded-engine.js";
import type { Engine } from "../../src/engine/engine.js";
import { input, logprob, mul, neg } from "../../src/objectives/expression.js";
import { createRandom } from "../../src/random.js";
import { machine, THREADS } from "../peer/side.js";
import { SHAPES, type ShapeName } from "./shape.js";
import type { Act, Learn, Sample, Score, Task } from "./task.js";

/** A task that was measured: the least of some repetitions, in seconds. */
export interface Measured {
  readonly shape: ShapeName;
  readonly task: Task;
  readonly wall: number;
  readonly processor: number;
}

/** All measurements of a day. */
export interface Measurements {
  readonly date: string;
  readonly machine: string;
  readonly threads: number;
  readonly repetitions: number;
  /** The machine's load before and after. */
  readonly load: readonly [number, number];
  /** Bytes read or written in a second of processor time, where a copy of 64 MiB is made. */
  readonly bandwidth: number;
  readonly points: readonly Measured[];
}

const learn = (sequences: number, length: number): Learn => ({ do: "learn", sequences, length });
const score = (sequences: number, length: number): Score => ({ do: "score", sequences, length });
const sample = (prompts: number, prompt: number): Sample => ({
  do: "sample",
  prompts,
  count: 1,
  prompt,
  fresh: 32,
});
/** Turns like the default run's. */
const act = (episodes: number): Act => ({
  do: "act",
  episodes,
  turns: 20,
  first: 43,
  response: 6,
  observation: 11,
});
const episodeLength = ({ first, turns, response, observation }: Act) =>
  first + turns * (response + observation);

const TASKS: readonly (readonly [ShapeName, readonly Task[]])[] = [
  [
    "tiny",
    [
      learn(8, 256),
      learn(4, 512),
      learn(2, 1024),
      learn(2, 2048),
      learn(2, 4096),
      score(8, 256),
      sample(64, 128),
      sample(64, 512),
      act(32),
      learn(32, episodeLength(act(32))),
      act(128),
      learn(128, episodeLength(act(128))),
    ],
  ],
  ["small", [learn(8, 256), learn(2, 1024), score(8, 256), sample(64, 128)]],
  ["base", [learn(4, 256), learn(2, 1024), score(4, 256), sample(16, 128)]],
  ["SmolLM2-135M", [learn(2, 256), sample(16, 128)]],
];

/** Measures every task, several times after once to warm up. */
export async function measure(repetitions: number, say: (line: string) => void) {
  const before = loadavg()[0]!;
  const points: Measured[] = [];
  for (const [name, tasks] of TASKS) {
    const engine = await createEmbeddedEngine({
      model: { config: SHAPES[name] },
      threads: THREADS,
    });
    for (const task of tasks) {
      const point = { shape: name, task, ...(await timed(engine, task, repetitions)) };
      say(JSON.stringify(point));
      points.push(point);
    }
    await engine.dispose();
  }
  const result: Measurements = {
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    threads: THREADS,
    repetitions,
    load: [rounded(before), rounded(loadavg()[0]!)],
    bandwidth: bandwidth(),
    points,
  };
  return result;
}

async function timed(engine: Engine, task: Task, repetitions: number) {
  const [walls, processors]: [number[], number[]] = [[], []];
  for (let round = 0; round <= repetitions; round++) {
    const work = prepare(engine, task, round);
    const [begin, before] = [performance.now(), process.cpuUsage()];
    await work();
    const { user, system } = process.cpuUsage(before);
    if (round === 0) continue;
    walls.push((performance.now() - begin) / 1000);
    processors.push((user + system) / 1e6);
  }
  return { wall: rounded(Math.min(...walls)), processor: rounded(Math.min(...processors)) };
}

/** The most of some copies. */
function bandwidth(): number {
  const [from, to] = [new Float32Array(2 ** 24).fill(1), new Float32Array(2 ** 24).fill(2)];
  const found = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    for (let i = 0; i < 10; i++) to.set(from);
    const { user, system } = process.cpuUsage(before);
    return (10 * 2 * from.byteLength) / ((user + system) / 1e6);
  });
  return rounded(Math.max(...found));
}

const rounded = (value: number): number => Number(value.toPrecision(4));
const objective = { loss: mul(neg(logprob), input("weight")), metrics: {} };

/** A task with its tokens drawn, so that drawing them is not measured. */
function prepare(engine: Engine, task: Task, seed: number): () => Promise<unknown> {
  const random = createRandom(seed);
  const draw = (count: number) =>
    Array.from({ length: count }, () => random.int(engine.capabilities.vocabularySize));
  if (task.do === "sample") {
    const requests = Array.from({ length: task.prompts }, (_, row) => ({
      prompt: draw(task.prompt),
      count: task.count,
      maxTokens: task.fresh,
      seed: row,
    }));
    return () => engine.sample(requests);
  }
  if (task.do === "act") return () => play(engine, task, draw);
  const sequences = Array.from({ length: task.sequences }, () => {
    // One token more than is predicted.
    const ids = draw(task.length + 1);
    return { ids, inputs: { weight: ids.map(() => 1 / (task.sequences * task.length)) } };
  });
  if (task.do === "score") return () => engine.forward(sequences);
  return async () => {
    await engine.forwardBackward(sequences, objective);
    await engine.optimStep({ learningRate: 1e-5 });
  };
}

async function play(engine: Engine, task: Act, draw: (count: number) => number[]): Promise<void> {
  let prompts = Array.from({ length: task.episodes }, () => draw(task.first));
  for (let turn = 0; turn < task.turns; turn++) {
    const samples = await engine.sample(
      prompts.map((prompt, seed) => ({
        prompt,
        maxTokens: task.response,
        continued: true,
        seed,
      })),
    );
    prompts = prompts.map((prompt, row) => [
      ...prompt,
      ...samples[row]![0]!.tokens,
      ...draw(task.observation),
    ]);
  }
}
