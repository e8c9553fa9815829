import "@pawl/pawl/cli/all-worlds.js";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Agent } from "@pawl/agents/agent.js";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { generateText, Output, stepCountIs, tool } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { replayRun } from "./replay.js";
import { trainAgent } from "./train-agent.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-agent-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Place {
  readonly prompt: string;
}

/** An agent that is asked twice and may look; answers with a blank in them are worth a point. */
const agent: Agent<Place> & { readonly name: string } = {
  name: "blanks",
  tasks: {
    train: ["go on", "look"].map((prompt) => ({ prompt })),
    test: [{ prompt: "go on" }],
  },
  async run({ prompt }, model, abortSignal) {
    const look = tool({
      inputSchema: z.object({ place: z.string() }),
      execute: async ({ place }) => `seen ${place}`,
    });
    const common = { model, tools: { look }, stopWhen: stepCountIs(3), abortSignal };
    const { response, text } = await generateText({ ...common, prompt });
    const again = await generateText({
      ...common,
      messages: [
        { role: "user", content: prompt },
        ...response.messages,
        { role: "user", content: "sure?" },
      ],
      // An answer under masks, which are recorded, learnt under, replayed and resumed.
      output: Output.object({ schema: z.object({ sure: z.boolean() }) }),
    });
    return text + JSON.stringify(again.output);
  },
  reward: ({ result }) => Number(String(result).includes(" ")),
  texts: ["go on, look. sure? seen a place", '{"sure": true}', '{"sure": false}'],
};

const settings = {
  model: { start: "tiny", maxContext: 384 },
  engine: { threads: 1 },
  updates: 2,
  groups: 2,
  groupSize: 2,
  paw: { loss: "cmae" },
  gradients: { every: 0 },
  maxTokens: 16,
  // An evaluation between updates leaves prefixes in the engine's cache, which a resumed run has not.
  evaluation: { every: 1, tasks: 1 },
  checkpointEvery: 1,
};

/** What a run recorded, without times. */
const numbersOf = (run: string): readonly MetricsLine[] =>
  openRun(run, () => undefined)
    .metrics()
    .map((line) =>
      Object.fromEntries(Object.entries(line).filter(([name]) => !/^(seconds|memory)/.test(name))),
    );

describe("a run of an agent", () => {
  const trees = { advantage: { name: "tree" }, rollout: { branch: { points: 1, width: 2 } } };

  it.each<[string, object]>([
    ["", {}],
    [" with branches", trees],
  ])("is trained, replayed, repeated and resumed with the same numbers%s", async (how, more) => {
    await checkRun(how, { ...settings, ...more });
  });

  async function checkRun(how: string, settings: Readonly<Record<string, unknown>>): Promise<void> {
    const once = await trainAgent({ ...agent, settings, folder: join(folder, `once${how}`) });
    const branches = [...openRun(once, () => undefined).episodes()].filter(({ branch }) => branch);
    expect(branches.length > 0).toBe(how !== "");
    const lines = numbersOf(once);
    expect(lines.map(({ update }) => update)).toEqual([-1, 0, 1]);
    expect(lines[0]).toHaveProperty(["eval.test.success"]);
    expect(lines[2]!["policy.tokens"]).toBeGreaterThan(0);
    expect(lines[2]!["train.trained"]).toBe(1);
    const steps = [...openRun(once, () => undefined).episodes()].flatMap((one) => one.steps);
    expect(steps.some(({ sequence }) => sequence?.constraint !== undefined)).toBe(true);
    // What the user says after an answer is what the world model learns to expect.
    expect(lines[2]!["world.targets"]).toBeGreaterThan(0);
    const { config, kind } = JSON.parse(readFileSync(join(once, "manifest.json"), "utf8"));
    expect([kind, config.env, config.prompt.style]).toEqual([
      "train",
      expect.objectContaining({ name: "blanks" }),
      "chat",
    ]);

    for await (const update of replayRun(
      openRun(once, () => undefined),
      { losses: true, tolerance: 1e-4 },
    )) {
      expect(update.divergences).toEqual([]);
      expect(update.compared.length).toBeGreaterThan(20);
    }

    const part = join(folder, `part${how}`);
    const stop = new AbortController();
    const interrupted = trainAgent({
      ...agent,
      settings,
      folder: part,
      signal: stop.signal,
      onMetrics: ({ update }) => void (update === 0 && setImmediate(() => stop.abort())),
    });
    await expect(interrupted).rejects.toThrow();
    await trainAgent({ ...agent, settings, folder: part, resume: true });
    expect(numbersOf(part)).toEqual(lines);
  }

  it("keeps no checkpoint for what it did on the split that is reported", async () => {
    const successes = async (splits: readonly string[]) => {
      const run = await trainAgent({
        ...agent,
        tasks: { ...agent.tasks, valid: [{ prompt: "look" }] },
        reward: ({ task }) => Number(task.prompt === "go on"),
        settings: { ...settings, updates: 1, evaluation: { every: 1, tasks: 1, splits } },
        folder: join(folder, splits.join("-")),
      });
      return latestCheckpoint(run)!.state.success;
    };
    // Every task of `test` is solved, and none of `valid`.
    expect(await successes(["test"])).toBeUndefined();
    expect(await successes(["valid", "test"])).toBe(0);
    expect(await successes(["test", "valid"])).toBe(1);
  });

  it("learns what is rewarded", async () => {
    const learnt = await trainAgent({
      name: "vowels",
      tasks: { train: ["go", "on"].map((prompt) => ({ prompt })) },
      run: async ({ prompt }, model) => (await generateText({ model, prompt })).text,
      reward: ({ result }) => Number(/[aeiou]/.test(String(result))),
      settings: {
        ...settings,
        ...{ updates: 15, groupSize: 16, maxTokens: 3, checkpointEvery: 15 },
        model: { start: "tiny", maxContext: 64 },
        optimizer: { learningRate: 2e-3 },
        objective: { kl: 0 },
        evaluation: { every: 0 },
      },
      folder: join(folder, "vowels"),
    });
    const success = numbersOf(learnt).flatMap((line) => line["train.success"] ?? []);
    const mean = (values: readonly number[]) =>
      values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(mean(success.slice(-3))).toBeGreaterThan(mean(success.slice(0, 3)) + 0.3);
  });

  it("refuses settings that do not apply, before it starts", async () => {
    const refused = (more: object) =>
      trainAgent({ ...agent, settings: { ...settings, ...more }, folder: join(folder, "none") });
    await expect(refused({ prompt: { style: "compact" } })).rejects.toThrow("expected chat");
    await expect(refused({ prompt: { history: 2 } })).rejects.toThrow("prompt.history: an agent");
    await expect(refused({ warmStart: { episodes: 3 } })).rejects.toThrow("warmStart.episodes");
    await expect(refused({ corrections: { episodes: 3 } })).rejects.toThrow("corrections.episodes");
    await expect(refused({ invalidActionLimit: 3 })).rejects.toThrow("invalidActionLimit");
    await expect(refused({ split: "dev" })).rejects.toThrow('no split "dev"; its tasks are in');
    await expect(refused({ updatess: 3 })).rejects.toThrow("updatess");
  });
});
