import type { Engine } from "@pawl/core/engine/engine.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { play } from "@pawl/core/rollout/rollout.js";
import {
  appendObservation,
  appendResponse,
  encodePrompt,
  encodeResponse,
} from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { describe, expect, it } from "vitest";
import { comparedLosses, gradientShares, noisySteps } from "./gradient-shares.js";
import { noisyCharacters } from "./noisy-text.js";

/** The expert's episodes in a house, tokenized with a tokenizer trained on them. */
async function recorded(noise: "all" | "off") {
  const environment = openEnvironment({ name: "household", noise });
  const style = promptStyle(environment.prompt, { style: "compact" });
  const tokenizer = buildTokenizer(await worldTexts(environment, style));
  const episodes: Episode[] = [];
  await play({
    environment,
    style,
    policy: expertPolicy(environment.expert!),
    tasks: environment.tasks("train").slice(0, 4),
    groupSize: 1,
    seed: 0,
    onEpisode: (episode) => {
      const steps = episode.steps.map((step) => {
        const answered = appendResponse(encodePrompt(tokenizer, style, step.prompt), {
          ids: encodeResponse(tokenizer, style, step.response),
        });
        const { observation } = step;
        return {
          ...step,
          sequence: appendObservation(answered, tokenizer, style, observation, false),
        };
      });
      episodes.push({ ...episode, steps });
    },
  });
  return {
    tokenizer,
    ...(await noisySteps((one) => noisyCharacters(environment, one), tokenizer, episodes)),
  };
}

describe("noise in the household's observations", () => {
  it("is its brands and ids, and nothing else", async () => {
    const { steps, left, tokenizer } = await recorded("all");
    expect(left).toBe(0);
    const texts = (wanted: boolean) =>
      steps.flatMap(({ ids, start, noisy }) =>
        noisy.flatMap((isNoisy, i) =>
          isNoisy === wanted ? [tokenizer.decode([ids[start + i]!])] : [],
        ),
      );
    expect(texts(true).length).toBeGreaterThan(20);
    expect(texts(true).join("")).toMatch(/^[A-Za-z\d# ]+$/);
    // Capital letters are brands or start a sentence; digits after # are ids.
    expect(texts(false).join("")).not.toMatch(/#\d/);
    expect(texts(false).join("")).toMatch(/\bshelf|drawer|cabinet|table\b/);
  });

  it("is absent if it is off", async () => {
    const { steps } = await recorded("off");
    expect(steps.length).toBeGreaterThan(10);
    expect(steps.flatMap(({ noisy }) => noisy)).not.toContain(true);
  });
});

describe("gradientShares", () => {
  it("splits each loss's gradient between noise and the rest", async () => {
    const targets = Uint8Array.from([0, 1, 1, 1]);
    const step = { ids: [1, 2, 3, 4], targets, start: 1, noisy: [true, false, false] };
    const logprobs = Float32Array.from([0, Math.log(0.01), Math.log(0.5), Math.log(0.5)]);
    const engine = { forward: async () => [{ logprobs }] } as unknown as Engine;
    const shares = await gradientShares(engine, [step], comparedLosses(0.2));
    expect([shares.tokens, shares.noisyTokens]).toEqual([3, 1]);
    expect(shares.meaningfulP).toBeCloseTo(0.5, 6);
    const noise = Object.fromEntries(shares.losses.map(({ loss, noisy }) => [loss, noisy]));
    // CE: 1 − p; MAE: p·(1 − p); the masks keep p ≤ 0.2, p ≥ 0.2, p ≤ 0.8.
    expect(noise.ce).toBeCloseTo(0.99 / 1.99, 5);
    expect(noise.mae).toBeCloseTo(0.0099 / 0.5099, 5);
    expect(noise["cmae below 0.2"]).toBe(1);
    expect(noise["cmae above 0.2"]).toBe(0);
    expect(noise["cmae margin 0.2"]).toBeCloseTo(0.0099 / 0.5099, 5);
  });
});
