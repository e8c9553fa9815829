import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { afterAll, expect, it } from "vitest";
import type { Engine, SampleRequest } from "../../engine/engine.js";
import { housePrompt } from "../../envs/household/prompt.js";
import { openEnvironment } from "../../envs/open.js";
import { encodePrompt, responseEndId } from "../../text/encode.js";
import { promptStyle } from "../../text/prompt.js";
import type { Sequence } from "../../text/sequence.js";
import { createTokenizer } from "../../text/tokenizer.js";
import { buildTokenizer } from "../../text/tokenizer-builder.js";
import { sft, sftOptions } from "../../train/sft.js";
import { rollout } from "../rollout.js";
import { expertPolicy } from "./config.js";
import { enginePolicy } from "./engine.js";

const environment = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
const style = promptStyle(housePrompt, { style: "compact", history: "all" });
const tasks = environment.tasks("train").slice(0, 16);
let engine: Engine;
afterAll(() => engine?.dispose());

it("stops at every end token of a chat model, and leaves it out of the response", async () => {
  const built = buildTokenizer(await worldTexts(environment, style));
  const other = built.id("<|do|>")!;
  const generation = JSON.stringify({ eos_token_id: [other, built.endId] });
  const tokenizer = createTokenizer({ ...built.files, generation });
  const asked: SampleRequest[] = [];
  const tokens = [...built.encode("look"), other];
  const stub = {
    capabilities: { vocabularySize: built.vocabularySize, maxContext: 4096 },
    sample: async (requests: readonly SampleRequest[]) => {
      asked.push(...requests);
      return requests.map(() => [{ tokens, logprobs: tokens.map(() => -1), stopReason: "stop" }]);
    },
  } as unknown as Engine;
  const policy = enginePolicy({
    engine: stub,
    tokenizer,
    style: promptStyle(housePrompt),
    sampling: { maxTokens: 8 },
  });
  const groups = await rollout({
    environment,
    style: promptStyle(housePrompt),
    tasks: tasks.slice(0, 1),
    groupSize: 1,
    seed: 0,
    policy,
    stepLimit: 1,
  });
  expect(asked[0]!.stop).toEqual([[built.endId], [other]]);
  const [step] = groups[0]!.episodes[0]!.steps;
  expect(step!.response).toBe("look");
  // Training uses what was sampled, including its end token.
  const { start, end } = step!.sequence!.spans.find(({ kind }) => kind === "action")!;
  expect(step!.sequence!.ids.slice(start, end)).toEqual(tokens);
});

it("continues a conversation's tokens, and renders it whole where the template forgets", async () => {
  const built = buildTokenizer(["go to look at the shelf <think>"], { chat: true });
  const config = JSON.parse(built.files.config!) as { chat_template: string };
  const forgets = `{% if message['role'] == 'assistant' and not loop.last %}{% set content = message['content'].split('</think>')[-1] %}{% else %}{% set content = message['content'] %}{% endif %}`;
  const forgetful = config.chat_template
    .replace("message['content'] + eos_token", "content + eos_token")
    .replace("%}{{", `%}${forgets}{{`);
  const tokenizer = createTokenizer({
    ...built.files,
    config: JSON.stringify({ ...config, chat_template: forgetful }),
  });
  const responses = ["look", "<think>where?</think>look", "look", "look"];
  const asked: SampleRequest[] = [];
  const stub = {
    capabilities: { vocabularySize: built.vocabularySize, maxContext: 4096 },
    sample: async (requests: readonly SampleRequest[]) =>
      requests.map((request) => {
        const tokens = [...built.encode(responses[asked.length]!, { plain: true }), built.endId!];
        asked.push(request);
        return [{ tokens, logprobs: tokens.map(() => -1), stopReason: "stop" }];
      }),
  } as unknown as Engine;
  const chat = promptStyle(housePrompt, { style: "chat" }, tokenizer);
  const [group] = await rollout({
    environment,
    style: chat,
    tasks: tasks.slice(0, 1),
    groupSize: 1,
    seed: 0,
    policy: enginePolicy({ engine: stub, tokenizer, style: chat, sampling: { maxTokens: 8 } }),
    stepLimit: 4,
  });
  const { steps } = group!.episodes[0]!;
  const prompts = asked.map(({ prompt }) => Array.from(prompt));
  const continues = (at: number) =>
    steps[at - 1]!.sequence!.ids.every((id, i) => id === prompts[at]![i]);
  expect([1, 2, 3].map(continues)).toEqual([true, false, true]);
  expect(tokenizer.decode(prompts[3]!)).not.toContain("where?");
  for (const [at, { prompt }] of steps.entries())
    expect(prompts[at]).toEqual(encodePrompt(tokenizer, chat, prompt).ids);
});

it("reads the recorded prompt's tokens at every step, continued or re-encoded", async () => {
  const tokenizer = buildTokenizer(await worldTexts(environment, style));
  const { vocabularySize } = tokenizer;
  const model = { preset: "tiny", vocabularySize, maxContext: 512 } as const;
  engine = await createEmbeddedEngine({ model, threads: 1 });
  const common = { environment, style, tasks, groupSize: 1, seed: 0 };
  const shown = await rollout({ ...common, policy: expertPolicy(environment.expert!) });
  // Enough to act, but not enough to write every action the way the history does.
  await sft(
    engine,
    shown.flatMap(({ episodes }) => episodes),
    { tokenizer, style },
    { ...sftOptions.parse({ epochs: 12, batch: 4, optimizer: { learningRate: 2e-3 } }), seed: 0 },
  );
  const sampling = { maxTokens: 12, temperature: 1 };
  const policy = enginePolicy({ engine, tokenizer, style, sampling });
  const played = await rollout({ ...common, policy, stepLimit: 8 });
  let goneOn = 0;
  let anew = 0;
  for (const { steps } of played.flatMap(({ episodes }) => episodes))
    steps.forEach(({ prompt, sequence }, i) => {
      const { ids, spans } = encodePrompt(tokenizer, style, prompt);
      expect(sequence!.ids.slice(0, ids.length)).toEqual(ids);
      expect(sequence!.spans.slice(0, spans.length)).toEqual(spans);
      const before = steps[i - 1]?.sequence?.ids;
      if (before === undefined) return;
      if (before.every((id, at) => ids[at] === id)) goneOn++;
      else anew++;
    });
  const cutOff = (sequence: Sequence) => {
    const action = sequence.spans.findLast(({ kind }) => kind === "action")!;
    return sequence.ids[action.end - 1] !== responseEndId(tokenizer, style);
  };
  const short = enginePolicy({ engine, tokenizer, style, sampling: { ...sampling, maxTokens: 4 } });
  const hasty = await rollout({ ...common, policy: short, stepLimit: 3 });
  let cut = 0;
  for (const step of [...played, ...hasty].flatMap(({ episodes }) => episodes[0]!.steps)) {
    expect(step.cut === true).toBe(cutOff(step.sequence!));
    if (step.cut) expect(step).toMatchObject({ wellFormed: false, valid: false });
    cut += step.cut ? 1 : 0;
  }
  expect(cut).toBeGreaterThan(10);
  expect(goneOn).toBeGreaterThan(12);
  expect(anew).toBeGreaterThan(0);
});
