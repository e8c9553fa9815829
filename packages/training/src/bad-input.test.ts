/**
 * What breaks while training: the run continues if it can do so honestly, and says what it left
 * out.
 */

import type { Engine } from "@pawl/core/engine/engine.js";
import type { Env, Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { log, logprob, sub } from "@pawl/core/objectives/expression.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { describeLeftOut } from "@pawl/core/train/activity.js";
import { updateMetrics } from "@pawl/core/train/metrics.js";
import { trainRl } from "@pawl/core/train/rl.js";
import type { FinishedUpdate } from "@pawl/core/train/rl-types.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkConfig } from "./checks.js";
import { tinyConfig } from "./testing.js";
import { worldTexts } from "./world-text.js";

const config = tinyConfig({ updates: 1, groups: 3, groupSize: 8, gradients: { every: 1 } });
const environment = openEnvironment({ ...config.env, name: "household" });
const style = promptStyle(environment.prompt, config.prompt);
let tokenizer: Tokenizer;
let engine: Engine;

beforeAll(async () => {
  tokenizer = buildTokenizer(await worldTexts(environment, style));
  engine = await createEmbeddedEngine({
    model: { preset: "tiny", vocabularySize: tokenizer.vocabularySize, maxContext: 256 },
    threads: 1,
  });
  await engine.snapshotReference();
});
afterAll(() => engine.dispose());

/** One update in a world where something is changed about each of its episodes. */
async function oneUpdate(
  change: (env: Env) => Partial<Env>,
  changedEngine: Engine = engine,
): Promise<FinishedUpdate> {
  const changed: Environment = {
    ...environment,
    create() {
      const env = environment.create() as Env;
      return Object.setPrototypeOf(change(env), env) as Env;
    },
  };
  const done: FinishedUpdate[] = [];
  const start = { firstUpdate: 0, optimizerSteps: 0 };
  const context = { engine: changedEngine, tokenizer, style, ...start };
  const onUpdate = async (update: FinishedUpdate): Promise<void> => void done.push(update);
  const onEpisodes = async (): Promise<void> => undefined;
  await trainRl({ ...context, environment: changed, onEpisodes, onUpdate }, config);
  return done[0]!;
}

const episodesOf = ({ groups }: FinishedUpdate) => groups.flatMap((group) => group.episodes);
const allFinite = (line: object): boolean => Object.values(line).every(Number.isFinite);

describe("an update", () => {
  it("with a group of broken episodes learns from the others, and says so", async () => {
    // The task that is sampled first cannot be opened.
    let broken: string | undefined;
    const done = await oneUpdate((env) => ({
      reset(task, seed) {
        broken ??= task.id;
        if (task.id === broken) throw new Error(`data of ${task.id} is damaged`);
        return env.reset(task, seed);
      },
    }));
    expect(done.prepared.summary).toMatchObject({ groups: 2, episodes: 16, brokenEpisodes: 8 });
    const line = updateMetrics(done);
    expect(line).toMatchObject({ "train.broken": 8, "train.success": 0 });
    expect(line["world.lambda"]).toBe(1);
    expect(line["train.tokens"]).toBeGreaterThan(0);
    expect(allFinite(line)).toBe(true);
    expect(describeLeftOut("update 1", episodesOf(done))).toBe(
      `update 1: 8 of 24 episodes broke and were left out. The first, of task ${broken}: data of ${broken} is damaged`,
    );
  });

  it("in which a world throws now and then keeps broken episodes out of success and learning", async () => {
    let worlds = 0;
    const done = await oneUpdate((env) => {
      const fails = worlds++ % 4 === 0;
      return {
        step(action) {
          if (fails) throw new Error("the server went away");
          const result = env.step(action);
          return { ...result, done: true, reward: 10, info: { ...result.info, success: true } };
        },
      };
    });
    expect(updateMetrics(done)).toMatchObject({ "train.broken": 6, "train.success": 1 });
    expect(done.prepared.transitions.every(({ source }) => source.stop !== "broken")).toBe(true);
  });

  it("in which every world throws stops with the reason", async () => {
    const failing = oneUpdate(() => ({
      step() {
        throw new Error("the server went away");
      },
    }));
    await expect(failing).rejects.toThrow(/first 24 episodes all broke.*the server went away/);
  });

  it("without any reward has numbers, full balance, and no NaN", async () => {
    const done = await oneUpdate((env) => ({
      step(action) {
        const result = env.step(action);
        return { ...result, done: false, reward: 0, info: { ...result.info, success: false } };
      },
    }));
    const line = updateMetrics(done);
    expect(line).toMatchObject({ "train.return": 0, "train.success": 0, "world.lambda": 1 });
    expect(line["policy.loss"]).toBeDefined();
    expect(allFinite(line)).toBe(true);
    expect(describeLeftOut("update 1", episodesOf(done))).toBeUndefined();
  });

  it("with a NaN loss is rejected with the reason, and leaves the weights unchanged", async () => {
    const sequence = { ids: [1, 2, 3] };
    const logprobs = async () => Array.from((await engine.forward([sequence]))[0]!.logprobs);
    const before = await logprobs();
    const loss = log(sub(logprob, 1));
    const failing = oneUpdate((env) => ({ step: (action) => env.step(action) }), {
      ...engine,
      forwardBackward: (sequences) => engine.forwardBackward(sequences, { loss, metrics: {} }),
    });
    await expect(failing).rejects.toThrow(
      /loss of token \d+ of sequence \d+ is NaN; its gradient was not added/,
    );
    expect(await logprobs()).toEqual(before);
  });
});

describe("a run", () => {
  it("without tasks to learn or evaluate on is refused before it starts", () => {
    const without = (empty: string): Environment => ({
      ...environment,
      tasks: (split) => (split === empty ? [] : environment.tasks(split)),
    });
    expect(() => checkConfig(config, without("train"))).toThrow(/nothing to learn on.*"train"/);
    expect(() => checkConfig(config, without("valid_seen"))).toThrow(
      /nothing to evaluate: split "valid_seen"/,
    );
    const never = tinyConfig({ evaluation: { every: 0 } });
    expect(() => checkConfig(never, without("valid_seen"))).not.toThrow();
    expect(() => checkConfig(config, environment)).not.toThrow();
  });
});
