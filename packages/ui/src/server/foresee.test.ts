import { hermes, tools } from "@pawl/agents/testing.js";
import type { Engine, SampleRequest } from "@pawl/core/engine/engine.js";
import type { Environment } from "@pawl/core/envs/env.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import {
  appendObservation,
  appendResponse,
  encodePrompt,
  encodeResponse,
} from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { describe, expect, it } from "vitest";
import { expectStep, nextActions } from "./foresee.js";
import type { DeskModel } from "./model-desk.js";

const prompt = { style: "chat" } as const;
const style = promptStyle({}, prompt, hermes);
const response = '<tool_call>{"name": "look", "arguments": {"place": "shelf"}}</tool_call>';
const action = style.parse(response, tools).action;
const view = {
  ...{ goal: "go", firstObservation: "seen", observation: "seen", steps: [], index: 0, tools },
  admissible: undefined,
};
const read = encodePrompt(hermes, style, style.render(view));
const written = appendResponse(read, { ids: encodeResponse(hermes, style, response) });
const sequence = appendObservation(written, hermes, style, "enough", false, { response, tools });

/** A chat agent that answers every question with these texts in turn; it is no world model. */
function agent(...texts: string[]): DeskModel & { readonly asked: SampleRequest[] } {
  const asked: SampleRequest[] = [];
  const engine = {
    capabilities: { maxContext: 10_000, entropies: false },
    async sample(requests: readonly SampleRequest[]) {
      asked.push(...requests);
      return requests.map(() => [
        { tokens: encodeResponse(hermes, style, texts.shift()!), stopReason: "stop" },
      ]);
    },
    forward: async (sequences: readonly { ids: readonly number[] }[]) =>
      sequences.map(({ ids }) => ({ logprobs: new Float32Array(ids.length) })),
  } as unknown as Engine;
  const predict = () => Promise.reject(new Error("asked as a world model"));
  const worldModel = { name: "none", predict };
  const acting = { prompt, maxTokens: 64 } as unknown as DeskModel["acting"];
  return { name: "agent", engine, tokenizer: hermes, worldModel, acting, asked };
}

/** The tokens up to the tool's answer: tools, conversation, call and the answer's tag. */
const upToAnswer = sequence.ids.slice(
  0,
  sequence.spans.find(({ kind }) => kind === "observation")!.start,
);

describe("a chat agent in a world of tools", () => {
  it("is asked what it expected on the tokens of its record", async () => {
    const model = agent("enough");
    const step = { ...{ prompt: [], response, action, observation: "enough" }, sequence };
    const episode = { ...view, steps: [step] } as unknown as Episode;
    const { observation, note } = await expectStep("nowhere", model, episode, 0);
    expect([observation, note]).toEqual(["enough", undefined]);
    expect(model.asked.map((one) => one.prompt)).toEqual([upToAnswer]);
    expect(hermes.decode(upToAnswer)).toMatch(/look.*<tool_response>$/s);
  });

  it("is asked what its next action would do on the tokens that it would read", async () => {
    const samples = Array.from({ length: 16 }, () => response);
    const model = agent(...samples.slice(0, 1), "enough");
    const { actions } = await nextActions(model, { prompt: {} } as Environment, view);
    expect(actions).toMatchObject([{ action, predicted: "enough", predictedSuccess: false }]);
    const formatted = encodeResponse(hermes, style, style.format(action));
    const asked = Array.from(model.asked[1]!.prompt);
    expect(asked.slice(0, read.ids.length + formatted.length)).toEqual([...read.ids, ...formatted]);
    expect(hermes.decode(asked)).toMatch(/<tool_response>$/);
  });
});
