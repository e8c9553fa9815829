import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { describe, expect, it } from "vitest";
import type { WorldModel } from "./model.js";
import { openSimulator, simulatedSplit, worldOf } from "./simulator-kind.js";
import { oneRoom, oracleModel } from "./testing.js";

/** A folder that looks like a model; what it answers is `answers`. */
const model = mkdtempSync(join(tmpdir(), "pawl-simulator-"));
writeFileSync(join(model, "config.json"), "{}");
const world = { name: "household", rooms: 1, receptacles: 4, objects: 3, families: ["pick"] };
const anchor = { every: 0, actions: [] };

function opened(answers: WorldModel) {
  const log: string[] = [];
  const environment = openSimulator({ model, world, anchor }, async () => {
    log.push("loaded");
    return { model: answers, dispose: async () => void log.push("disposed") };
  });
  return { environment, log };
}

const saying = (observation: string, more: object = {}): WorldModel => ({
  name: "parrot",
  predict: async (queries) =>
    queries.map(() => ({ observation, done: false, success: false, ...more })),
});

async function episodesOf(environment: ReturnType<typeof oneRoom>, split: string) {
  const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
  const groups = await rollout({
    environment,
    style,
    policy: {
      name: "looks",
      batch: Number.POSITIVE_INFINITY,
      act: async (situations) => situations.map(({ format }) => ({ response: format("look") })),
    },
    tasks: environment.tasks(split).slice(0, 2),
    groupSize: 1,
    seed: 0,
    stepLimit: 2,
  });
  return groups.flatMap(({ episodes }) => episodes);
}

describe("--env simulator", () => {
  it("plays simulated tasks in the model, and the others in the world", async () => {
    const { environment, log } = opened(saying("a dream"));
    expect(environment.splits).toContain("simulated_valid_seen");
    const real = await episodesOf(environment, "train");
    expect(log).toEqual([]);
    expect(real[0]!.steps[0]!.observation).toMatch(/You are in|You hold/);
    const simulated = await episodesOf(environment, simulatedSplit("train"));
    expect(simulated.map(({ steps }) => steps[0]!.observation)).toEqual(["a dream", "a dream"]);
    // The same tasks, under names of their own.
    expect(simulated.map(({ goal }) => goal)).toEqual(real.map(({ goal }) => goal));
    expect(simulated[0]!.task.id).toBe(`simulated/${real[0]!.task.id}`);
    expect(environment.task(simulated[0]!.task.id)).toEqual(simulated[0]!.task);
    // A model has no list of actions, so neither world shows one.
    expect(environment.create().admissibleActions).toBeUndefined();
    expect(environment.expert).toBeUndefined();
    await environment.close!();
    await episodesOf(environment, simulatedSplit("train"));
    expect(log).toEqual(["loaded", "disposed", "loaded"]);
  });

  it("gives the world's own answers if the model is never wrong", async () => {
    const { environment } = opened(oracleModel(oneRoom(), "train"));
    const seen = async (split: string) =>
      (await episodesOf(environment, split)).map(({ steps }) => steps.map((s) => s.observation));
    expect(await seen(simulatedSplit("train"))).toEqual(await seen("train"));
  });

  it("breaks an episode without an answer, from which nobody is to learn", async () => {
    let asked = 0;
    const { environment } = opened({
      name: "sometimes",
      predict: async (queries) =>
        queries.map(() => {
          asked += 1;
          const none = { observation: "", done: false, success: false };
          return asked === 1 ? { ...none, degeneration: "loop" } : { ...none, observation: "ok" };
        }),
    });
    const episodes = await episodesOf(environment, simulatedSplit("train"));
    expect(episodes.map(({ stop }) => stop).sort()).toEqual(["broken", "step-limit"]);
    expect(episodes.find(({ stop }) => stop === "broken")!.error).toMatch(/no answer \(loop\)/);
  });

  it("refuses by name what cannot work", () => {
    expect(() => openSimulator({ model, anchor }, expect.unreachable)).toThrow(
      /env\.world: .* does not say which world it models/,
    );
    expect(() => worldOf({ model, world: "simulator" })).toThrow(/cannot model a simulator/);
    const missing = { model: join(model, "nowhere"), world, anchor };
    expect(() => openSimulator(missing, expect.unreachable)).toThrow(/holds no model/);
    expect(() => openSimulator({ model, world: "hous", anchor }, expect.unreachable)).toThrow(
      /no environment "hous"/,
    );
    expect(findEnvKind("simulator").summary).toMatch(/world model/);
  });
});
