import type { Capabilities } from "@pawl/core/engine/engine.js";
import { describe, expect, it } from "vitest";
import { engineChoice, engineFor, engineOptions, refuseMissing } from "./engines.js";

const all: Capabilities = {
  name: "the engine",
  vocabularySize: 32,
  maxContext: 64,
  parameters: 1,
  entropies: true,
  values: true,
  fusedObjective: true,
  lora: true,
  discardGradients: true,
  temperatures: true,
};
const needs = { values: true, entropies: true, discardGradients: true, temperatures: true };

it("names everything that an engine lacks, and what to do about it", () => {
  refuseMissing(needs, all);
  const nothing = { values: false, entropies: false, discardGradients: false, temperatures: false };
  refuseMissing(nothing, { ...all, ...nothing });
  expect(() => refuseMissing(needs, { ...all, temperatures: false })).toThrow(
    "the engine cannot do what the configuration asks: it computes log-probabilities at temperature 1 only: set temperature to 1",
  );
  for (const remedy of [/than ppo/, /objective.entropy to 0/, /gradients.every to 0/])
    expect(() => refuseMissing(needs, { ...all, ...nothing })).toThrow(remedy);
});

const served = engineOptions.parse({
  address: "http://gpu:8000",
  model: "small",
  loraRank: 8,
  copy: true,
});

describe("engineFor", () => {
  it("is the run's engine if none is named, without the settings for training only", () => {
    const engine = engineFor(served, engineChoice.parse({ threads: 2 }));
    expect(engine).toMatchObject({ address: "http://gpu:8000", model: "small", threads: 2 });
    expect(engine).toMatchObject({ copy: false, loraRank: 8 });
  });

  it("is the named one, without the settings of the run's own server", () => {
    const engine = engineFor(served, engineChoice.parse({ address: "embedded" }));
    expect(engine).toEqual(engineOptions.parse({}));
  });

  it("on another server keeps the rank, which belongs to the weights, but no names", () => {
    const engine = engineFor(served, { address: "http://other:8000" });
    expect(engine).toEqual(engineOptions.parse({ address: "http://other:8000", loraRank: 8 }));
  });

  it("keeps the adapters of a run of the embedded engine, but not on a server", () => {
    const here = engineOptions.parse({ loraRank: 4, loraAlpha: 8, loraTargets: ["q_proj"] });
    expect(engineFor(here)).toEqual(here);
    expect(engineFor(here, { address: "http://gpu:8000" })).toEqual(
      engineOptions.parse({ address: "http://gpu:8000" }),
    );
  });

  it("is embedded for a model that was not trained by a run", () => {
    expect(engineFor(undefined)).toEqual(engineOptions.parse({}));
  });
});
