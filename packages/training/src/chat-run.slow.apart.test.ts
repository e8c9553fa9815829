/** Training on conversations: one sequence per episode, the same numbers as step by step. */
import "@pawl/pawl/cli/all-worlds.js";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole, some } from "@pawl/core/dose-testing.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { registerEnv } from "@pawl/core/envs/registry.js";
import { guessKind } from "@pawl/core/envs/tool-env-testing.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { encodePrompt } from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { mergeContinuations } from "@pawl/core/update/merge.js";
import { actionSequences, transitionsOf } from "@pawl/core/update/transitions.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { trainConfig } from "./config.js";
import { openSavedModel } from "./open-model.js";
import { replayRun } from "./replay.js";
import { trainRun } from "./run.js";
import { findSavedModel } from "./saved-model.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-chat-run-"));
afterAll(() => rmSync(parent, { recursive: true }));

const guess = guessKind();

const config = (changes: Record<string, unknown> = {}) =>
  tinyConfig({
    prompt: { style: "chat" },
    model: { start: "tiny", maxContext: 320 },
    updates: 2,
    stepLimit: 4,
    paw: { alpha: 1 },
    evaluation: { every: 0 },
    ...changes,
  });
const fail = (message: string): never => {
  throw new Error(message);
};
const episodesOf = (folder: string): readonly Episode[] => [...openRun(folder, fail).episodes()];
const groupsOf = (episodes: readonly Episode[]) =>
  [...new Set(episodes.map(({ group }) => group))].map((index) => {
    const own = episodes.filter(({ group }) => group === index);
    return { index, task: own[0]!.task, episodes: own };
  });

describe("a run on conversations", () => {
  const folder = join(parent, "run");
  beforeAll(async () => trainRun(config(), { folder, onProblem: fail }));

  it("records the tokens of the whole rendering at every step", async () => {
    const tokenizer = await loadTokenizer(join(folder, "tokenizer"));
    const environment = openEnvironment({ ...config().env, name: "household" });
    const style = promptStyle(environment.prompt, { style: "chat" }, tokenizer);
    for (const { steps } of episodesOf(folder))
      for (const { sequence, prompt, cut } of steps) {
        // A response that was cut off has its own tokens, not those of its text.
        if (cut || steps.some((step) => step.cut)) continue;
        const { ids, spans } = encodePrompt(tokenizer, style, prompt);
        expect(sequence!.ids.slice(0, ids.length)).toEqual(ids);
        expect(sequence!.spans.slice(0, spans.length)).toEqual(spans);
      }
  });

  it("learns an episode in one pass, with the log-probabilities of the steps apart", async () => {
    const transitions = transitionsOf(groupsOf(episodesOf(folder).slice(0, 6)));
    const apart = actionSequences(transitions);
    const merged = mergeContinuations(
      transitions.map(({ sequence: { ids }, actionStart: start, actionEnd }) => ({
        ids: ids.slice(0, actionEnd),
        start,
        targets: new Uint8Array(actionEnd - start).fill(1),
        inputs: {},
      })),
    );
    expect(apart.length).toBeGreaterThan(6);
    expect(merged).toHaveLength(6);
    const { engine } = await openSavedModel(findSavedModel(join(folder, "reference")));
    const targetsOf = async (sequences: Parameters<typeof engine.forward>[0]) =>
      (await engine.forward(sequences)).flatMap(({ logprobs }) =>
        Array.from(logprobs).filter((value) => value !== 0),
      );
    const [one, each] = [await targetsOf(merged), await targetsOf(apart)];
    await engine.dispose();
    expect(one).toHaveLength(each.length);
    one.forEach((value, i) => {
      expect(value).toBeCloseTo(each[i]!, 4);
    });
    // What was recorded while sampling, from kept caches.
    transitions
      .flatMap(({ logprobs }) => logprobs!)
      .forEach((value, i) => {
        expect(value).toBeCloseTo(each[i]!, 4);
      });
  });

  it("is replayed with the same numbers, two observations ahead", async () => {
    const updates = [];
    for await (const update of replayRun(openRun(folder, fail), { losses: true, tolerance: 1e-3 }))
      updates.push(update);
    expect(updates.map(({ update, divergences }) => [update, divergences])).toEqual([
      [0, []],
      [1, []],
    ]);
    expect(updates[0]!.compared).toEqual(
      expect.arrayContaining(["world.targets", "train.tokens", "world.loss"]),
    );
  });

  it("is resumed with the same numbers", async () => {
    const resumed = join(parent, "resumed");
    await trainRun(config({ updates: 1 }), { folder: resumed });
    await trainRun(config(), { folder: resumed, resume: true });
    const timeless = (path: string) =>
      openRun(path, fail)
        .metrics()
        .map((line: MetricsLine) =>
          Object.fromEntries(
            Object.entries(line).filter(([name]) => !/^(seconds|memory)\./.test(name)),
          ),
        );
    expect(timeless(resumed)).toEqual(timeless(folder));
    expect(episodesOf(resumed)).toEqual(episodesOf(folder));
  });
});

const styles = [
  ["chat", "all"],
  ["compact", 1],
  ["compact", "all"],
  ["full", 1],
] as const;
it.each(some(styles, 4))(
  "observations without their ends are learnt and replayed in %s with history %s",
  async (style, history) => {
    const counts = [];
    for (const observationEnd of [true, false]) {
      const folder = join(parent, `${style}-${history}-${observationEnd}`);
      const prompt = { style, history, observationEnd };
      await trainRun(config({ prompt, updates: 1, model: { start: "tiny", maxContext: 900 } }), {
        folder,
        onProblem: fail,
      });
      for await (const { divergences } of replayRun(openRun(folder, fail), {
        losses: true,
        tolerance: 1e-3,
      }))
        expect(divergences).toEqual([]);
      const transitions = transitionsOf(groupsOf(episodesOf(folder)));
      counts.push(
        transitions.map(({ source, step, observationStart, observationEnd: end }) => [
          source.steps[step]!.observation.length,
          end - observationStart,
        ]),
      );
    }
    // The first observation follows from the weights, which are the same until then.
    const [learnt, read] = counts;
    expect(learnt![0]![1]).toBeGreaterThan(1);
    if (learnt![0]![0] === read![0]![0]) expect(learnt![0]![1]).toBe(read![0]![1]! + 1);
  },
);

it.runIf(isWhole)(
  "a conversation with a limit starts anew where it is cut, and is replayed",
  async () => {
    const folder = join(parent, "limited");
    const prompt = { style: "chat", maxTokens: 120 };
    await trainRun(config({ prompt, updates: 1, paw: { alpha: 1 }, stepLimit: 6 }), { folder });
    const episodes = episodesOf(folder);
    const transitions = transitionsOf(groupsOf(episodes));
    for (const { actionStart } of transitions) expect(actionStart).toBeLessThanOrEqual(120);
    const anew = transitions.filter(
      ({ source, step, sequence }) =>
        step > 0 && source.steps[step - 1]!.sequence!.ids.some((id, i) => id !== sequence.ids[i]),
    );
    expect(anew.length).toBeGreaterThan(0);
    expect(anew.length).toBeLessThan(transitions.length - episodes.length);
    for await (const { divergences } of replayRun(openRun(folder, fail), {
      losses: true,
      tolerance: 1e-3,
    }))
      expect(divergences).toEqual([]);
  },
);

it("learns to call a tool, and is replayed", async () => {
  registerEnv(guess);
  const folder = join(parent, "tools");
  const tools = trainConfig(guess).parse({
    ...config({ updates: 1, paw: { alpha: 1 } }),
    env: { name: guess.name },
    model: { start: "tiny", maxContext: 512 },
    warmStart: { episodes: 64, sft: { epochs: 6, batch: 8, optimizer: { learningRate: 3e-3 } } },
    maxTokens: 24,
  });
  await trainRun(tools, { folder });
  const steps = episodesOf(folder).flatMap((episode) => episode.steps);
  const called = steps.filter(({ valid }) => valid);
  expect(called.length).toBeGreaterThan(steps.length / 2);
  for (const { response, action } of called) {
    expect(response).toMatch(/^\{"name":"guess","arguments":\{"number":\d\}\}$/);
    expect(action).toMatch(/^\{"tool":"guess","arguments":\{"number":\d\}\}$/);
  }
  for await (const { divergences } of replayRun(openRun(folder, fail), {
    losses: true,
    tolerance: 1e-3,
  }))
    expect(divergences).toEqual([]);
});
