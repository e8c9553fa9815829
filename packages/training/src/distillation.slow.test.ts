import { appendFileSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { startTestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { isComparable, replayRun } from "./replay.js";
import { checkTraining, type TrainOptions, trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-distillation-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};
const teacher = join(parent, "teacher");

/** Everything that does not depend on time. */
const linesOf = (folder: string) =>
  openRun(folder, fail)
    .metrics()
    .map((line) => Object.fromEntries(Object.entries(line).filter(([name]) => isComparable(name))));

const student = (distillation: object, changes: object = {}) =>
  tinyConfig({
    ...{ updates: 4, groups: 4, groupSize: 4, minibatch: 8, evaluation: { every: 0 }, keep: 9 },
    ...{ paw: { loss: "off" }, objective: { entropy: 0, kl: 0 } },
    optimizer: { learningRate: 2e-3, warmup: 0 },
    distillation: { teacher, ...distillation },
    ...changes,
  });

beforeAll(async () => {
  const sft = { epochs: 8, batch: 8, optimizer: { learningRate: 2e-3 } };
  const config = tinyConfig({ updates: 0, warmStart: { episodes: 32, sft }, seed: 5 });
  await trainRun(config, { folder: teacher });
}, 120_000);

it("comes closer to its teacher, and a resumed run does the same, without the teacher's run", async () => {
  const away = join(parent, "away");
  cpSync(teacher, away, { recursive: true });
  const config = student({ teacher: away });
  const whole = join(parent, "whole");
  await trainRun(config, { folder: whole });
  const distances = linesOf(whole).flatMap((line) => line["distillation.kl"] ?? []);
  expect(distances).toHaveLength(4);
  expect(distances.at(-1)!).toBeLessThan(0.85 * distances[0]!);

  const folder = join(parent, "resumed");
  const stop = new AbortController();
  const onMetrics: TrainOptions["onMetrics"] = (line) => {
    if (line.update === 1) stop.abort(new Error("enough"));
  };
  await expect(trainRun(config, { folder, signal: stop.signal, onMetrics })).rejects.toThrow();
  rmSync(away, { recursive: true });
  await trainRun(config, { folder, resume: true });
  expect(linesOf(folder)).toEqual(linesOf(whole));
  const episodes = [whole, folder].map((one) => [...openRun(one, fail).episodes()]);
  expect(episodes[1]).toEqual(episodes[0]);

  const replayed = [];
  for await (const one of replayRun(openRun(folder, fail), { losses: true, tolerance: 1e-3 }))
    replayed.push(one);
  expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
  const compared = replayed.map(({ compared: names }) => names);
  expect(compared.every((names) => names.includes("distillation.kl"))).toBe(true);
  expect(compared.every((names) => names.includes("policy.loss"))).toBe(true);

  // Its own copy of the teacher is sealed.
  const weights = join(folder, "teacher", "model.safetensors");
  expect(existsSync(weights)).toBe(true);
  appendFileSync(weights, "x");
  await expect(trainRun({ ...config, updates: 5 }, { folder, resume: true })).rejects.toThrow(
    /teacher/,
  );
}, 240_000);

it("learns from returns too, and with another estimator, if it is told to", async () => {
  const folder = join(parent, "rewards");
  const changes = { updates: 1, advantage: { name: "rloo" } };
  await trainRun(student({ rewards: true, weight: 0.1 }, changes), { folder });
  expect(linesOf(folder).at(-1)).toHaveProperty(["distillation.kl"]);
}, 120_000);

it("a teacher on an engine server says the same as here", async () => {
  const folder = join(parent, "server");
  const server = await startTestServer({ model: testModel, folder, extensions: true });
  const here = join(parent, "here");
  const there = join(parent, "there");
  await trainRun(student({}, { updates: 1 }), { folder: here });
  await trainRun(student({ engine: server.url }, { updates: 1 }), { folder: there });
  const [a, b] = [here, there].map((one) => linesOf(one).at(-1)!);
  expect(b!["distillation.kl"]).toBeCloseTo(a!["distillation.kl"]!, 4);
  expect(b!["policy.loss"]).toBeCloseTo(a!["policy.loss"]!, 4);
  await server.close();
}, 120_000);

it("refuses a teacher that cannot teach, by name", async () => {
  const run = (distillation: object, changes: object = {}) => {
    const folder = mkdtempSync(join(parent, "refused-"));
    rmSync(folder, { recursive: true });
    return trainRun(student(distillation, changes), { folder });
  };
  await expect(run({ teacher: join(parent, "nobody") })).rejects.toThrow(
    /^distillation.teacher: .*nobody holds no model/,
  );
  expect(readdirSync(parent).filter((name) => name.startsWith("refused-"))).toEqual([]);
  await expect(run({}, { model: { start: "tiny", maxContext: 320 } })).rejects.toThrow(
    /distillation.teacher .*: it reads 256 tokens, and what the policy reads and writes may have 320/,
  );
  const rooms = { name: "household", rooms: 2, receptacles: 6, objects: 5 };
  await expect(run({}, { env: rooms })).rejects.toThrow(/its tokens are not those of the policy/);
  await expect(run({ teacher: "served" })).rejects.toThrow(/distillation.teacher served: the emb/);
  const check = (config: ReturnType<typeof tinyConfig>, given: string) =>
    checkTraining(config, { given: (path) => path === given });
  expect(() => check(student({ teacher: undefined, weight: 2 }), "distillation.weight")).toThrow(
    /distillation.weight.*distillation.teacher/,
  );
  expect(() => check(student({}, { advantage: { name: "rloo" } }), "advantage.name")).toThrow(
    /distillation.rewards/,
  );
}, 120_000);
