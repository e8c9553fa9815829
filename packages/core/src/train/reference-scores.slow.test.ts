/** The reference scoring while the policy acts: which requests are made, and what they return. */

import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Engine, EngineError, type TargetSequence } from "../engine/engine.js";
import { openEnvironment } from "../envs/open.js";
import type { Group } from "../rollout/episode.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { rollout } from "../rollout/rollout.js";
import { promptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { actionSequences, transitionsOf } from "../update/transitions.js";
import { drawTasks } from "./draws.js";
import { checkScoring, referenceScores } from "./reference-scores.js";

const config = tinyConfig({ groupSize: 6, stepLimit: 7, invalidActionLimit: 4 });
const environment = openEnvironment({
  ...{ name: "household", rooms: 1, receptacles: 4, objects: 3 },
  families: ["pick"],
});
let tokenizer: Tokenizer;
let engine: Engine;
beforeAll(async () => {
  const words = promptStyle(environment.prompt, config.prompt);
  tokenizer = buildTokenizer(await worldTexts(environment, words));
  const model = {
    preset: "tiny" as const,
    vocabularySize: tokenizer.vocabularySize,
    maxContext: 256,
  };
  engine = await createEmbeddedEngine({ model, seed: 1, threads: 1 });
  await engine.snapshotReference();
});
afterAll(() => engine?.dispose());

/** The engine as one that scores while it samples; its requests, and how many it had at once. */
function watched(fails: (request: number) => boolean = () => false) {
  const requests: (readonly TargetSequence[])[] = [];
  const most = { open: 0, ever: 0 };
  const scoring: Engine = {
    ...engine,
    capabilities: { ...engine.capabilities, scoresBesideSampling: true },
    async forward(sequences, options) {
      requests.push(sequences);
      most.open += 1;
      most.ever = Math.max(most.ever, most.open);
      try {
        if (fails(requests.length - 1)) throw new EngineError("not now");
        return await engine.forward(sequences, options);
      } finally {
        most.open -= 1;
      }
    },
  };
  return { scoring, requests, most };
}

/** Plays, watched if there is somebody to watch. */
async function play(scores: ReturnType<typeof referenceScores>): Promise<readonly Group[]> {
  const style = promptStyle(environment.prompt, config.prompt, tokenizer);
  const sampling = { maxTokens: 6, temperature: 0.8 };
  return rollout({
    environment,
    policy: enginePolicy({ engine, tokenizer, style, sampling }),
    style,
    tasks: drawTasks(environment, { split: "train", groups: 3 }, 4),
    groupSize: config.groupSize,
    seed: 5,
    stepLimit: 7,
    invalidActionLimit: 4,
    ...scores?.watch(config.groupSize),
  });
}

const idsOf = (requests: readonly (readonly TargetSequence[])[]): readonly string[] =>
  requests.map((sequences) => sequences.map(({ ids }) => Array.from(ids).join(" ")).join("; "));

describe("scores of the reference", () => {
  it("asked for while acting are those asked for afterwards, to the last bit", async () => {
    const during = watched();
    const early = referenceScores(during.scoring, config)!;
    const groups = await play(early);
    const transitions = transitionsOf(groups);
    const found = await early.of(groups, transitions);

    // As a resumed or replayed run does it: with the record alone.
    const after = watched();
    const late = referenceScores(after.scoring, config)!;
    const again = await late.of(groups, transitions);
    expect(again.ahead).toBe(0);
    expect([...idsOf(during.requests)].sort()).toEqual([...idsOf(after.requests)].sort());
    expect(found.logprobs).toEqual(again.logprobs);

    // 16 sequences of 6 episodes are three steps of each; every step is asked for once.
    expect(Math.max(...after.requests.map((request) => request.length))).toBe(18);
    expect(after.requests.flat()).toHaveLength(transitions.length);

    // And in one request: the same but for rounding.
    const plain = await engine.forward(actionSequences(transitions), { weights: "reference" });
    for (const [i, { logprobs }] of plain.entries())
      for (const [at, value] of logprobs.entries())
        expect(Math.abs(found.logprobs[i]![at]! - value)).toBeLessThan(1e-5);
  });

  it("are asked for before the episodes are over, a bounded number at once", async () => {
    const { scoring, requests, most } = watched();
    const scores = referenceScores(scoring, config)!;
    const groups = await play(scores);
    expect(requests.length).toBeGreaterThan(0);
    const sent = requests.length;
    await scores.of(groups, transitionsOf(groups));
    expect(requests.length).toBeGreaterThanOrEqual(sent);
    expect(most.ever).toBeLessThanOrEqual(16);
    const asked = requests.length;
    const once = await scores.of(groups, transitionsOf(groups));
    expect(once.ahead).toBe(1);
    expect(requests).toHaveLength(asked);
  });

  it("that failed while acting are asked for again, and a second failure is reported", async () => {
    const { scoring, requests } = watched((request) => request === 0);
    const scores = referenceScores(scoring, config)!;
    const groups = await play(scores);
    const transitions = transitionsOf(groups);
    const { logprobs } = await scores.of(groups, transitions);
    expect(logprobs.every((numbers) => numbers.some((value) => value < 0))).toBe(true);
    expect(new Set(idsOf(requests)).size).toBe(requests.length - 1);

    const hopeless = referenceScores(watched(() => true).scoring, config)!;
    await expect(hopeless.of(await play(hopeless), transitions)).rejects.toThrow("not now");
  });

  it("are left to one request after acting where the engine cannot, or is told not to", () => {
    const { scoring } = watched();
    expect(referenceScores(engine, config)).toBeUndefined();
    expect(referenceScores(scoring, { ...config, scoreWhileActing: false })).toBeUndefined();
    const without = { ...config, objective: { ...config.objective, kl: 0 } };
    expect(referenceScores(scoring, without)).toBeUndefined();
    expect(() => checkScoring({ ...without, scoreWhileActing: true })).toThrow(
      /scoreWhileActing: there is no reference.*objective.kl is 0/,
    );
    expect(() => checkScoring({ ...config, overlap: 1, scoreWhileActing: true })).toThrow(
      /scoreWhileActing: with overlap 1/,
    );
  });
});
