import { household } from "@pawl/core/envs/household/household.js";
import { housePrompt } from "@pawl/core/envs/household/prompt.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { chatPolicy } from "@pawl/core/rollout/policies/chat.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { epsilonPolicy } from "@pawl/core/rollout/policies/random.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import {
  appendObservation,
  appendResponse,
  encodePrompt,
  encodeResponse,
} from "@pawl/core/text/encode.js";
import { type PromptOptions, promptStyle, promptText } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { describe, expect, it } from "vitest";
import { startChatServer } from "./helpers/chat-server.js";

const environment = household.open(household.options.parse({}));

async function episodes(split: string, count: number, prompt: PromptOptions): Promise<Episode[]> {
  const groups = await rollout({
    environment,
    policy: epsilonPolicy(expertPolicy(environment.expert!), 0.3),
    style: promptStyle(housePrompt, prompt),
    tasks: environment.tasks(split).slice(0, count),
    groupSize: 1,
    seed: 1,
  });
  return groups.flatMap((group) => group.episodes);
}

/** Everything a model reads or writes in an episode. */
function textsOf(episode: Episode): readonly string[] {
  const steps = episode.steps.flatMap((step) => [step.action, step.observation]);
  return [episode.goal, episode.firstObservation, ...steps];
}

describe("a tokenizer built from the household's own text", () => {
  const compact = { style: "compact", history: "all" } as const;

  it("encodes unseen houses with one token for each word, number and symbol", async () => {
    const tokenizer = buildTokenizer((await episodes("train", 300, compact)).flatMap(textsOf));
    const unseen = (await episodes("valid_unseen", 40, compact)).flatMap(textsOf);
    const words = (text: string) => text.match(/[a-z]+|\d+|[^a-z\d\s]/gi)?.length ?? 0;
    let tokens = 0;
    let expected = 0;
    for (const text of unseen) {
      tokens += tokenizer.encode(text).length;
      expected += words(text);
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    }
    expect(tokens).toBe(expected);
  });

  it("makes an episode one stream of ids", async () => {
    const style = promptStyle(housePrompt, compact);
    const [episode] = await episodes("train", 1, compact);
    const tokenizer = buildTokenizer(textsOf(episode!));
    const { steps } = episode!;
    expect(steps.length).toBeGreaterThan(3);
    let sequence = encodePrompt(tokenizer, style, steps[0]!.prompt);
    for (const [at, step] of steps.entries()) {
      expect(sequence.ids).toEqual(encodePrompt(tokenizer, style, step.prompt).ids);
      const ids = encodeResponse(tokenizer, style, step.response);
      sequence = appendResponse(sequence, { ids });
      const done = at === steps.length - 1;
      sequence = appendObservation(sequence, tokenizer, style, step.observation, done);
    }
    expect(sequence.ids.at(-1)).toBe(tokenizer.endId);
  });
});

it("a chat model plays, reflects on its failures, and reads its reflections in later attempts", async () => {
  const server = await startChatServer((response, { body }) => {
    const reflecting = body.messages[0]?.content.includes("Write the note only.");
    const content = reflecting ? "Do not dawdle." : "<think>hm</think><action>look</action>";
    response.end(JSON.stringify({ choices: [{ message: { content } }] }));
  });
  try {
    const style = promptStyle(housePrompt);
    const groups = await rollout({
      environment,
      policy: chatPolicy(
        { baseUrl: server.baseUrl, model: "tiny", prompting: "reflexion", retries: 0 },
        style,
      ),
      style,
      tasks: environment.tasks("train").slice(0, 2),
      groupSize: 3,
      seed: 1,
      stepLimit: 2,
      concurrency: 2,
    });
    for (const { episodes } of groups) {
      expect(episodes.map((episode) => episode.stop)).toEqual(Array(3).fill("step-limit"));
      expect(episodes.flatMap((one) => one.steps).every((step) => step.wellFormed)).toBe(true);
      const notes = episodes.map(
        (one) => promptText(one.steps[0]!.prompt).split("Do not dawdle.").length - 1,
      );
      expect(notes).toEqual([0, 1, 2]);
    }
  } finally {
    await server.close();
  }
});
