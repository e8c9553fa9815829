import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import {
  appendObservation,
  appendResponse,
  encodeResponse,
  stepPrompt,
} from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { imitationSequences } from "@pawl/core/train/sft.js";
import { expect, it } from "vitest";

it.each([20, 40, 60])("imitates what was read, in conversations of %i tokens", (maxTokens) => {
  const tokenizer = buildTokenizer(["Act. Bring a plum. You see plum look"], { chat: true });
  const style = promptStyle({ instructions: "Act.", answer: "" }, { style: "chat", maxTokens });
  const steps: Step[] = [];
  const start = { goal: "Bring a plum.", firstObservation: "A plum.", admissible: undefined };
  for (let index = 0; index < 6; index++) {
    const before = steps.at(-1);
    const observation = before?.observation ?? start.firstObservation;
    const view = { ...start, observation, steps: [...steps], index };
    const { sequence, pieces } = stepPrompt(tokenizer, style, () => style.render(view), before);
    const action = { response: "look", action: "look", observation: `You see plum ${index}.` };
    const acted = appendResponse(sequence, { ids: encodeResponse(tokenizer, style, "look") });
    const seen = appendObservation(acted, tokenizer, style, action.observation, false, action);
    const told = { wellFormed: true, valid: true, reward: 0 };
    steps.push({ ...action, ...told, prompt: pieces!, sequence: seen });
  }
  const episode = { ...start, stop: "step-limit", steps } as unknown as Episode;
  const learnt = { observationWeight: 1, randomActions: false };
  const found = imitationSequences(episode, { tokenizer, style }, learnt);
  for (const { sequence } of steps)
    expect(found.some(({ ids }) => sequence!.ids.every((id, at) => id === ids[at]))).toBe(true);
});
