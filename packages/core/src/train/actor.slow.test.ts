import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replayRun } from "@pawl/training/replay.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { afterAll, expect, it } from "vitest";
import type { Engine } from "../engine/engine.js";
import type { Env, Environment, RemoteEnv } from "../envs/env.js";
import { housePrompt } from "../envs/household/prompt.js";
import { openEnvironment } from "../envs/open.js";
import { openRun } from "../runs/run-folder.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { createActor } from "./actor.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-actor-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));
const fail = (message: string): never => {
  throw new Error(message);
};

it("trains at its episodes' own pace, and the run is replayed with the same numbers", async () => {
  const folder = join(parent, "own");
  const changes = { rollout: { pace: "own", rows: 4 }, updates: 2, evaluation: { every: 0 } };
  await trainRun(tinyConfig(changes), { folder });
  const replayed = [];
  for await (const one of replayRun(openRun(folder, fail), { losses: true, tolerance: 1e-3 }))
    replayed.push(one);
  expect(replayed.flatMap(({ divergences }) => divergences)).toEqual([]);
  for (const line of openRun(folder, fail).metrics().slice(1)) {
    // Six episodes, of which at most four are sampled together.
    expect(line["pace.live"]).toBeLessThanOrEqual(6);
    expect(line["pace.rows"]).toBeLessThanOrEqual(4);
    expect(line["pace.busy"]).toBeLessThanOrEqual(1);
    // Nothing is stale: the update learns from what its own weights drew.
    expect(line).not.toHaveProperty(["train.staleness"]);
    expect(line).not.toHaveProperty(["policy.importance"]);
  }
});

/** Rooms; the episodes of the first task that is played answer when the test says so. */
function held(rooms: Environment) {
  const waiting: (() => void)[] = [];
  let first: string | undefined;
  const create = (): RemoteEnv => {
    const world = rooms.create() as Env;
    let isHeld = false;
    return {
      get goal() {
        return world.goal;
      },
      get taskType() {
        return world.taskType;
      },
      async reset(task, seed) {
        first ??= task.id;
        isHeld = task.id === first;
        return world.reset(task, seed!);
      },
      async step(action) {
        if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
        return world.step(action);
      },
      close: async () => undefined,
    };
  };
  return { environment: { ...rooms, create }, waiting };
}

it("carries groups over into the next update, which draws fewer, and says which weights drew them", async () => {
  const rooms = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
  const { environment, waiting } = held(rooms);
  const style = promptStyle(housePrompt, { style: "compact", history: "all" });
  const tokenizer = buildTokenizer(await worldTexts(rooms, style));
  const tokens = [...tokenizer.encode("look"), tokenizer.endId!];
  const sample: Engine["sample"] = async (requests) =>
    requests.map(() => [{ tokens, logprobs: tokens.map(() => -1), stopReason: "stop" }]);
  const capabilities = { vocabularySize: tokenizer.vocabularySize, maxContext: 4096 };
  const engine = { capabilities, sample } as unknown as Engine;
  const config = tinyConfig({
    ...{ groups: 10, groupSize: 1, stepLimit: 1 },
    rollout: { pace: "own", stragglerSeconds: 0.02, stragglers: "carry" },
  });
  const onEpisodes = async () => undefined;
  const actor = createActor({ engine, environment, tokenizer, style, onEpisodes }, config);
  const first = await actor.draw(0);
  expect(first.groups.map(({ episodes }) => episodes[0]!.weights)).toEqual(Array(9).fill(0));
  expect(first.pace).toMatchObject({ carried: 1 });
  const next = actor.draw(1);
  for (const go of waiting.splice(0)) go();
  const second = await next;
  expect(second.groups.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(second.groups.map(({ episodes }) => episodes[0]!.weights)).toEqual([
    ...Array(9).fill(1),
    0,
  ]);
  await actor.end();
});
