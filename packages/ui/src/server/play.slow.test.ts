import { EventEmitter } from "node:events";
import { mkdtempSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { metricsPath } from "@pawl/core/runs/small-file.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  CriticAdvantages,
  ExpectedStep,
  NextActions,
  PlayView,
  StepView,
  WorldList,
} from "./api.js";
import { type EpisodeEntry, idOf } from "./episode-entry.js";
import { openEpisodeIndex } from "./episode-index.js";
import { viewEpisode } from "./episode-view.js";
import { createPlay, type Play } from "./play.js";
import { startRun } from "./testing.js";

const root = mkdtempSync(join(tmpdir(), "pawl-play-"));
const world = { name: "household", rooms: 1, receptacles: 4, objects: 3, families: ["pick"] };
let play: Play;
beforeAll(async () => {
  play = createPlay({ root, env: world, defaultWorld: world.name });
  await trainRun(tinyConfig({ updates: 1, evaluation: { every: 0 } }), {
    folder: join(root, "run"),
  });
});
afterAll(() => play.close());

/** A page's connection. */
const connection = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed });

function asking(body: unknown, method = "POST", socket = connection()): IncomingMessage {
  const sent = Readable.from([Buffer.from(JSON.stringify(body))]);
  return Object.assign(sent, { method, socket }) as unknown as IncomingMessage;
}

async function ask<T>(path: string, body: unknown, method = "POST"): Promise<T> {
  const indexOf = (run: string) => openEpisodeIndex(join(root, run));
  return (await play.handle(path, asking(body, method), indexOf)) as T;
}

const noIndex = (): never => {
  throw new Error("no index is needed");
};

describe("playing a world", () => {
  it("goes to the end by the expert's hints, and back by undo", async () => {
    let game = await ask<PlayView>("start", { seed: 1 });
    const first = game;
    while (!game.over) {
      const { action } = await ask<{ action: string }>("hint", { id: game.id });
      expect(game.admissible).toContain(action);
      game = await ask<PlayView>("step", { id: game.id, action });
    }
    expect(game).toMatchObject({ solved: true, over: true, admissible: [] });
    expect(game.total).toBeGreaterThan(0);
    await expect(ask("step", { id: game.id, action: "look" })).rejects.toThrow(/is over/);
    while (game.canUndo) game = await ask<PlayView>("undo", { id: game.id });
    expect(game).toEqual(first);
    await expect(ask("undo", { id: game.id })).rejects.toThrow(/nothing to take back/);
  });

  it("takes what a world answers to nonsense", async () => {
    const { id } = await ask<PlayView>("start", { task: "train/3", seed: 2 });
    const { steps, task } = await ask<PlayView>("step", { id, action: "<script>fly</script>" });
    expect(task).toBe("train/3");
    expect(steps[0]).toMatchObject({ valid: false, done: false, action: "<script>fly</script>" });
  });

  it("is closed when nobody plays any more, or when another game replaces it", async () => {
    const short = createPlay({ root, env: world, defaultWorld: world.name, idleMs: 40 });
    const one = async <T>(path: string, body: unknown): Promise<T> =>
      (await short.handle(path, asking(body), noIndex)) as T;
    const first = await one<PlayView>("start", { seed: 1 });
    await one<PlayView>("start", { seed: 1, replaces: first.id });
    await expect(one("hint", { id: first.id })).rejects.toThrow(/not there any more/);
    const left = await one<PlayView>("start", { seed: 1 });
    // Asking uses it, so it is asked once it must be gone.
    await new Promise((resolve) => setTimeout(resolve, 400));
    await expect(one("hint", { id: left.id })).rejects.toThrow(/not there any more/);
    await short.close();
  });

  it("is ended at once for pages that leave while theirs are started, so that others can start", async () => {
    const gone = asking({ seed: 1 }, "POST", connection(true));
    await expect(play.handle("start", gone, noIndex)).rejects.toThrow(/has left/);
    const slow = createPlay({
      root,
      env: { ...world, limits: { isolate: true } },
      defaultWorld: world.name,
    });
    const pages = Array.from({ length: 8 }, () => connection());
    const started = pages.map((page) =>
      slow.handle("start", asking({ seed: 1 }, "POST", page), noIndex),
    );
    const ended = Promise.allSettled(started);
    // All of them have been read and are being started.
    await new Promise((resolve) => setTimeout(resolve, 50));
    await expect(slow.handle("start", asking({ seed: 1 }), noIndex)).rejects.toThrow(
      /8 games are being started/,
    );
    for (const page of pages) page.emit("close");
    expect((await ended).map(({ status }) => status)).toEqual(pages.map(() => "rejected"));
    expect(pages.map((page) => page.listenerCount("close"))).toEqual(pages.map(() => 0));
    expect(await slow.handle("start", asking({ seed: 1 }), noIndex)).toMatchObject({ steps: [] });
    await slow.close();
  });

  it("refuses what is not there, and worlds that start programs", async () => {
    await expect(ask("step", { id: "none", action: "look" })).rejects.toThrow(/not there any more/);
    await expect(ask("start", { world: "atlantis" })).rejects.toThrow(/no environment "atlantis"/);
    await expect(ask("start", { world: "mcp" })).rejects.toThrow(/pawl ui --play --env mcp/);
    await expect(ask("start", { colour: "red" })).rejects.toThrow(/colour/);
    await expect(ask("start", { run: "../x" })).rejects.toThrow(/there is no/);
    await expect(ask("nothing", {})).rejects.toThrow(/nothing at this address/);
    await expect(ask("start", {}, "GET")).rejects.toThrow(/POST/);
    startRun(join(root, "tools"), {
      config: { env: { name: "mcp", servers: { evil: { command: "touch /tmp/x" } } } },
    }).finish("done");
    await expect(ask("start", { run: "tools" })).rejects.toThrow(/from the command line/);
    const list = await ask<WorldList>("worlds", { world: "alfworld" });
    expect(list.worlds.map(({ name }) => name)).not.toContain("mcp");
  });
});

describe("a checkpoint", () => {
  it("gives each action a probability, and what it expects then", async () => {
    const game = await ask<PlayView>("start", { run: "run", seed: 1 });
    const { how, actions } = await ask<NextActions>("think", { id: game.id, agent: "run" });
    expect(how).toBe("scored");
    expect(actions.map(({ action }) => action).sort()).toEqual([...game.admissible].sort());
    const ps = actions.map(({ p }) => p);
    expect(ps).toEqual([...ps].sort((a, b) => b - a));
    expect(ps.every((p) => p > 0) && ps.reduce((sum, p) => sum + p, 0) < 1).toBe(true);
    expect(actions.filter(({ predicted }) => predicted !== undefined)).toHaveLength(3);
  });

  it("is a world to play in, and the first difference from the real one is marked", async () => {
    const { id } = await ask<PlayView>("start", { run: "run", inside: "run", seed: 1 });
    const game = await ask<PlayView>("step", { id, action: "look" });
    const [step] = game.steps;
    expect(step!.real).toMatch(/^You are in/);
    // A model of one update knows nothing.
    expect(step!.same).toBe(false);
    expect(game.divergence).toBe(1);
    const back = await ask<PlayView>("undo", { id });
    expect(back).toMatchObject({ steps: [], divergence: null, over: false });
  });

  it("says what it expected at a recorded step, token by token", async () => {
    const index = openEpisodeIndex(join(root, "run"));
    await index.refresh();
    const entry = index.entries[0]!;
    const { tokens, observation } = await ask<ExpectedStep>("expect", {
      run: "run",
      id: idOf(entry),
      step: 0,
    });
    expect(typeof observation).toBe("string");
    const observed = tokens.filter(({ kind }) => kind === "observation");
    expect(observed.length).toBeGreaterThan(2);
    for (const { logprob, entropy, kept } of observed) {
      expect(logprob).toBeLessThan(0);
      expect(entropy).toBeGreaterThan(0);
      expect(typeof kept).toBe("boolean");
    }
    await expect(ask("expect", { run: "run", id: idOf(entry), step: 99 })).rejects.toThrow(
      /no step 100/,
    );
  });

  it("knows which steps of an update taught the world model", async () => {
    const folder = join(root, "run");
    const index = openEpisodeIndex(folder);
    await index.refresh();
    const { paw } = trainConfigOf(folder);
    let [steps, selected] = [0, 0];
    for (const entry of index.entries) {
      const episode = await viewEpisode(folder, index, idOf(entry));
      expect(episode.notes).toEqual([]);
      steps += episode.steps.length;
      selected += episode.steps.filter((step) => step.selected === true).length;
    }
    expect(paw.alpha).toBeLessThan(1);
    expect(selected).toBe(Math.ceil(paw.alpha * steps));
    const [line] = readMetrics(metricsPath(folder), () => undefined).filter(
      ({ update }) => update === 0,
    );
    expect(selected / steps).toBeCloseTo(line!["world.selectedShare"]!, 6);
  });

  it.each(["own", "shared"] as const)(
    "has a critic (%s weights) that says how much better each token was than expected",
    { timeout: 240_000 },
    async (weights) => {
      const run = `ppo-${weights}`;
      const advantage = { name: "ppo", gamma: 1, lambda: 1, scope: "response" };
      const config = { updates: 1, evaluation: { every: 0 }, advantage, critic: { weights } };
      await trainRun(tinyConfig(config), { folder: join(root, run) });
      const index = openEpisodeIndex(join(root, run));
      await index.refresh();
      const id = idOf(index.entries[0]!);
      const episode = await viewEpisode(join(root, run), index, id);
      expect(episode.critic).toBe(true);
      expect(episode.steps.every(({ advantage: one }) => one === undefined)).toBe(true);
      const { steps } = await ask<CriticAdvantages>("advantages", { run, id });
      const written = ({ tokens }: StepView) => tokens.filter(({ kind }) => kind === "action");
      expect(steps.map((one) => one.length)).toEqual(
        episode.steps.map((step) => written(step).length),
      );
      // With γ = λ = 1 the target of every token is the return: what is left is minus its value, and
      // the values of a critic that has learnt once differ.
      const values = steps.flat().map((one) => episode.row.return - one);
      expect(values.every(Number.isFinite)).toBe(true);
      expect(new Set(values).size).toBeGreaterThan(1);
      await expect(ask("advantages", { run: "run", id: idOf(await first("run")) })).rejects.toThrow(
        /has no critic/,
      );
    },
  );
});

async function first(run: string): Promise<EpisodeEntry> {
  const index = openEpisodeIndex(join(root, run));
  await index.refresh();
  return index.entries[0]!;
}
