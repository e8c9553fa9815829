/**
 * Prompts of played episodes have the ids that real tokenizers give their whole text, in every
 * style.
 */
import { existsSync } from "node:fs";
import { openEnvironment } from "@pawl/core/envs/open.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { play } from "@pawl/core/rollout/rollout.js";
import { conversationOf } from "@pawl/core/text/conversation.js";
import {
  appendObservation,
  appendResponse,
  encodePrompt,
  encodeResponse,
  nextPrompt,
} from "@pawl/core/text/encode.js";
import type { PromptOptions, PromptStyle } from "@pawl/core/text/prompt.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import type { Sequence } from "@pawl/core/text/sequence.js";
import { loadTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import { searchPrompt } from "@pawl/worlds/search/search.js";
import { beforeAll, describe, expect, it } from "vitest";

const worlds = ["household", "desk"] as const;

/** Some episodes of a teacher, and the style that they were played in. */
async function played(name: string, options: PromptOptions, tokenizer: Tokenizer) {
  const environment = openEnvironment({ name });
  const style = promptStyle(environment.prompt, options, tokenizer);
  const episodes: Episode[] = [];
  await play({
    environment,
    style,
    policy: expertPolicy(environment.expert ?? environment.seeker!),
    tasks: environment.tasks(environment.splits[0]!).slice(0, 3),
    groupSize: 1,
    seed: 0,
    onEpisode: (episode) => void episodes.push(episode),
  });
  return { style, steps: episodes.flatMap(({ steps }) => steps), episodes };
}

/** The ids of the whole text behind some ids. */
const whole = (tokenizer: Tokenizer, ids: readonly number[]): readonly number[] =>
  tokenizer.encode(tokenizer.decode(ids));

function expectWhole(tokenizer: Tokenizer, style: PromptStyle, { prompt }: Pick<Step, "prompt">) {
  const { ids } = encodePrompt(tokenizer, style, prompt);
  expect(ids).toEqual(whole(tokenizer, ids));
}

const observed = ({ spans }: Sequence): number =>
  spans.reduce((sum, { kind, start, end }) => sum + (kind === "observation" ? end - start : 0), 0);

describe("a tokenizer that was built for a world", () => {
  it.each(["compact", "chat", "full"] as const)(
    "gives %s prompts the ids of their text",
    async (style) => {
      const bare = buildTokenizer([], { chat: style === "chat" });
      const { steps } = await played("household", { style }, bare);
      const texts = steps.flatMap(({ prompt, response, observation }) => [
        ...prompt.map(({ text }) => text),
        response,
        observation,
      ]);
      const tokenizer = buildTokenizer(texts, { chat: style === "chat" });
      const made = promptStyle(openEnvironment({ name: "household" }).prompt, { style }, tokenizer);
      for (const step of steps) expectWhole(tokenizer, made, step);
    },
  );
});

describe.each([
  ["SmolLM2", "PAWL_SMOLLM2", process.env.PAWL_SMOLLM2],
  ["Qwen2.5", "PAWL_QWEN_TOKENIZER", process.env.PAWL_QWEN_TOKENIZER],
])("%s (needs %s, its GGUF file or a folder)", (_, __, name) => {
  const there = name !== undefined && existsSync(name);
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    if (there) tokenizer = await loadTokenizer((await fetchModel(name))?.folder ?? name);
  });

  it
    .skipIf(!there)
    .each(
      worlds.flatMap((world) => [
        [world, { style: "full" }] as const,
        [world, { style: "full", history: "all" }] as const,
        [world, { style: "chat" }] as const,
        [world, { style: "chat", history: 1, admissible: true }] as const,
      ]),
    )("gives the prompts of %s in %o the ids of their text", async (world, options) => {
    const { style, steps } = await played(world, options, tokenizer);
    expect(steps.length).toBeGreaterThan(9);
    for (const step of steps) expectWhole(tokenizer, style, step);
  });

  it.skipIf(!there)("gives the prompts of search the ids of their text", () => {
    const steps = [
      { action: "<search>plum</search>", observation: "Doc 1: A plum.\n\nDoc 2: (none)" },
      { action: "<search>fig</search>", observation: "\n\nnothing\n" },
    ];
    for (const style of ["full", "chat"] as const) {
      const made = promptStyle(searchPrompt, { style }, tokenizer);
      const goal = "What is a plum?";
      const view = { goal, firstObservation: goal, admissible: undefined };
      for (const [index, { observation }] of steps.entries()) {
        const shown = { ...view, observation, steps: steps.slice(0, index + 1), index: index + 1 };
        expectWhole(tokenizer, made, { prompt: made.render(shown) });
      }
    }
  });

  it.skipIf(!there).each(worlds)("continues conversations of %s with them", async (world) => {
    const { style, episodes } = await played(world, { style: "chat" }, tokenizer);
    for (const { steps } of episodes) {
      const { tools } = conversationOf(steps[0]!.prompt).tools ?? {};
      let next: Sequence = encodePrompt(tokenizer, style, steps[0]!.prompt);
      for (const step of steps) {
        const { response, observation } = step;
        const ids = encodeResponse(tokenizer, style, response);
        const acted = appendResponse(next, { ids });
        const turn = { response, tools };
        const seen = appendObservation(acted, tokenizer, style, observation, false, turn);
        expect(seen.ids.slice(0, acted.ids.length)).toEqual(acted.ids);
        const following = nextPrompt(tokenizer, style, seen, step, tools)!;
        expect(following.ids.slice(0, seen.ids.length)).toEqual(seen.ids);
        expect(following.ids).toEqual(whole(tokenizer, following.ids));
        next = following;
      }
    }
  });

  it.skipIf(!there)(
    "has as many tokens to learn of an observation in full as in chat",
    async () => {
      const { style: chat, steps } = await played("household", { style: "chat" }, tokenizer);
      const full = promptStyle(openEnvironment({ name: "household" }).prompt, {}, tokenizer);
      const end = tokenizer.endId;
      for (const { observation, response } of steps) {
        const own = tokenizer.encode(observation, { plain: true }).length;
        for (const style of [chat, full]) {
          const acted = encodePrompt(tokenizer, style, steps[0]!.prompt);
          const answered = appendResponse(acted, {
            ids: encodeResponse(tokenizer, style, response),
          });
          const seen = appendObservation(answered, tokenizer, style, observation, false, {
            response,
          });
          expect(observed(seen)).toBe(own + 1);
          expect(seen.ids.at(-1)).toBe(end);
        }
      }
    },
  );
});
