/** Runs that are generated: many small ones, a long one, and one with a large record. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createRandom, type Random } from "@pawl/core/random.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import type { Manifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { createRun } from "@pawl/core/runs/run-folder.js";

const fail = (message: string): never => {
  throw new Error(message);
};

/** Finished runs of 200 updates each, with different settings. */
export function makeRuns(folder: string, count: number): void {
  const updates = 200;
  for (let n = 0; n < count; n++) {
    const config = {
      seed: n % 5,
      updates,
      env: { name: "household" },
      paw: { rho: n / count },
    };
    const run = createRun(
      { folder: join(folder, `run-${n}`), kind: "train", seed: n % 5, config },
      fail,
    );
    for (let update = -1; update < updates; update++)
      run.recordMetrics({
        update,
        "train.success": update / updates,
        "seconds.learn": 2,
        loss: Math.sin(update),
      });
    run.finish("done");
  }
}

/** A finished run of many updates, each with the metrics of a recorded one; every tenth is evaluated. */
export function makeLongRun(folder: string, updates: number): void {
  const recorded = join("docs", "browser", "runs", "trial");
  const read = (name: string): string => readFileSync(join(recorded, name), "utf8");
  const lines = read("metrics.jsonl")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as MetricsLine);
  const { config, seed } = JSON.parse(read("manifest.json")) as Manifest;
  const run = createRun({ folder, kind: "train", seed, config: { ...config, updates } }, fail);
  const random = createRandom(1);
  const evaluation = lines.find((line) => "eval.valid_unseen.success" in line)!;
  const others = lines.filter(({ update }) => update! >= 0);
  for (let update = -1; update < updates; update++) {
    const line = {
      ...(update >= 0 && others[update % others.length]),
      ...((update + 1) % 10 === 0 && evaluation),
    };
    const changed = Object.entries(line).map(([name, value]) => [
      name,
      Number.isInteger(value) ? value : value * (0.95 + 0.1 * random.next()),
    ]);
    run.recordMetrics({ ...Object.fromEntries(changed), update });
  }
  run.finish("done");
}

/** Texts in which few words are frequent and many are rare, and tokens with log-probabilities. */
function makeStep(random: Random, vocabulary: readonly string[]): Step {
  const words = (count: number): string =>
    Array.from(
      { length: count },
      () => vocabulary[Math.floor(vocabulary.length * random.next() ** 3)],
    ).join(" ");
  const observation = words(110);
  const response = words(40);
  const ids = Array.from({ length: 260 }, () => random.int(50_000));
  return {
    prompt: [{ origin: "history", text: observation }],
    response,
    action: response.slice(0, 40),
    wellFormed: true,
    valid: random.next() < 0.9,
    observation,
    reward: 0,
    sequence: {
      ids,
      spans: [
        { kind: "prompt", start: 0, end: 60, origin: "history" },
        { kind: "action", start: 60, end: 120, origin: "policy" },
        { kind: "observation", start: 120, end: 260, origin: "env" },
      ],
      logprobs: Array.from({ length: 60 }, () => -random.next() * 3),
    },
  };
}

/** A run with this many episodes, of this many bytes before compression. */
export function makeLargeRun(folder: string, episodes: number, bytes: number): void {
  const random = createRandom(1);
  const vocabulary = Array.from(
    { length: 20_000 },
    (_, i) => `w${i.toString(36)}${random.int(36).toString(36)}`,
  );
  const pool = Array.from({ length: 2_000 }, () => makeStep(random, vocabulary));
  const size = JSON.stringify(pool).length / pool.length;
  const length = Math.max(1, Math.round(bytes / episodes / size));
  const run = createRun(
    {
      folder,
      kind: "train",
      seed: 0,
      config: { seed: 0, updates: 10_000, groups: 2, env: { name: "household" } },
    },
    fail,
  );
  const episode = (n: number): Episode => ({
    task: {
      id: `train/${n >> 3}`,
      type: ["pick", "heat", "cool", "clean"][(n >> 3) % 4]!,
      split: "train",
    },
    group: n >> 3,
    attempt: n % 8,
    seed: n,
    policy: "engine",
    goal: `Put the ${vocabulary[n % 500]} on the ${vocabulary[n % 77]}.`,
    firstObservation: "You are in a room.",
    steps: Array.from({ length }, () => pool[random.int(pool.length)]!),
    return: n % 3 === 0 ? 10 : 0,
    success: n % 3 === 0,
    stop: n % 3 === 0 ? "done" : "step-limit",
  });
  for (let n = 0; n < episodes; n += 8)
    run.recordEpisodes(Array.from({ length: Math.min(8, episodes - n) }, (_, i) => episode(n + i)));
  for (let update = 0; update < 10_000; update++)
    run.recordMetrics({
      update,
      ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`m.${i}`, random.next()])),
    });
  run.finish("done");
}
