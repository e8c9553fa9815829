import type { Episode, StopReason } from "@pawl/core/rollout/episode.js";
import { checkLengths } from "@pawl/core/train/sft.js";
import { expect, it } from "vitest";
import { checkContext, contradictions, watchContext } from "./checks.js";
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

const model = (start: string, maxContext: number) => ({ start, maxContext });
const episodes = (...stops: StopReason[]) => stops.map((stop) => ({ stop })) as Episode[];

it("refuses responses as long as the context of a model from scratch, and leaves other models alone", () => {
  expect(() => checkContext({ model: model("tiny", 512), maxTokens: 512 })).toThrow(
    /maxTokens is 512 and model.maxContext 512.*--model\.max-context/,
  );
  expect(() => checkContext({ model: model("tiny", 512), maxTokens: 511 })).not.toThrow();
  expect(() => checkContext({ model: model("a/b", 512), maxTokens: 512 })).not.toThrow();
});

it("refuses episodes to imitate that are longer than the context, and says by how much", () => {
  const samples = [[{ ids: [1, 2, 3] }, { ids: [1] }], [{ ids: [1, 2, 3, 4, 5] }], []];
  expect(() => checkLengths(samples, 5)).not.toThrow();
  expect(() => checkLengths(samples, 4)).toThrow(
    /^1 of 3 episodes to imitate do not fit into the model's context of 4 tokens; the longest has 5\..*--model\.max-context/,
  );
});

it("warns once when more than a tenth ended at the context limit", () => {
  const watch = watchContext();
  const nine = Array<StopReason>(9).fill("done");
  expect(watch("update 1", episodes("context-limit", ...nine))).toBeUndefined();
  expect(watch("update 2", episodes("context-limit", "context-limit", ...nine))).toMatch(
    /^update 2: 2 of 11 episodes ended at the context limit\. .*--max-tokens/,
  );
  expect(watch("update 3", episodes("context-limit", "done"))).toBeUndefined();
});

it("ends the run when all did; broken episodes do not count, and none at all is no reason", () => {
  const watch = watchContext();
  expect(watch("update 1", episodes("broken"))).toBeUndefined();
  expect(() => watch("update 2", episodes("broken", "context-limit", "context-limit"))).toThrow(
    /all 2 episodes ended at the context limit/,
  );
});
