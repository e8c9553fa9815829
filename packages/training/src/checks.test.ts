import { expect, it } from "vitest";
import { contradictions } from "./checks.js";
import { tinyConfig } from "./testing.js";

const chat = { hasChatTemplate: true };
const scratch = {
  model: { start: "chat.gguf" },
  optimizer: { learningRate: 2e-3 },
  warmStart: { episodes: 8, sft: { optimizer: { learningRate: 5e-3 } } },
};

it("says one line for each setting of models from scratch that a chat model is given", () => {
  const lines = contradictions(tinyConfig(scratch), chat);
  expect(lines.map((line) => line.split(":")[0])).toEqual([
    "prompt.style compact",
    "warmStart.sft.optimizer.learningRate 0.005",
    "optimizer.learningRate 0.002",
    "paw.loss cmae",
  ]);
  expect(lines.join()).toContain("chat.gguf is a chat model");
});

it("says nothing of what is not done, of gentle rates, and of models from scratch", () => {
  const gentle = {
    ...{ model: { start: "chat.gguf" }, prompt: { style: "chat" }, paw: { loss: "off" } },
    ...{ optimizer: { learningRate: 1e-3 }, warmStart: { episodes: 0 } },
  };
  expect(contradictions(tinyConfig(gentle), chat)).toEqual([]);
  const idle = { ...gentle, updates: 0, optimizer: { learningRate: 1 }, paw: { loss: "ce" } };
  expect(contradictions(tinyConfig(idle), chat)).toEqual([]);
  expect(contradictions(tinyConfig(scratch), { hasChatTemplate: false })).toEqual([]);
  expect(contradictions(tinyConfig({ ...scratch, model: { start: "tiny" } }), chat)).toEqual([]);
});
