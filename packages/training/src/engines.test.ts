import type { Capabilities } from "@pawl/core/engine/engine.js";
import { expect, it } from "vitest";
import { refuseMissing } from "./engines.js";

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
