/**
 * Real pretrained models from GGUF files, in both engines: SmolLM2-135M-Instruct and
 * Qwen2.5-Coder-Instruct of 0.5 and 1.5 B.
 *
 * Each runs if its variable names the file, or the model as `pypi:NAME`. The comparison with
 * transformers also needs a Python that has it (PAWL_PYTHON, otherwise python3), the PyTorch server one
 * that has PyTorch, and that of exports with llama.cpp one with xllamacpp (PAWL_TOOLS).
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "@pawl/core/engine/engine.js";
import type { ChatMessage, Tokenizer } from "@pawl/core/text/tokenizer.js";
import { callFormOf } from "@pawl/core/text/tool-calls.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { connectRemoteEngine } from "@pawl/engine-remote/remote/remote-engine.js";
import { describeFetched, fetchGguf } from "@pawl/models/fetch-model.js";
import { readGgufModel, writeGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { findTorchPython, startTorchServer } from "@pawl/pawl/cli/torch-server.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const python = process.env.PAWL_PYTHON ?? "python3";
const parity = spawnSync(python, ["-c", "import torch, transformers"]).status === 0;
if (!parity) console.warn(`no transformers in ${python}: real models are not compared with it`);

/** A model, the variable that names it, and its size. */
const MODELS = [
  ["SmolLM2-135M-Instruct", "PAWL_SMOLLM2", 134_515_008],
  ["Qwen2.5-Coder-0.5B-Instruct", "PAWL_QWEN_CODER", 494_032_768],
  ["Qwen2.5-Coder-1.5B-Instruct", "PAWL_QWEN_CODER_1B", 1_543_714_304],
] as const;
const tools = process.env.PAWL_TOOLS ?? "python3";
const llama = spawnSync(tools, ["-c", "import xllamacpp"]).status === 0;
if (!llama) console.warn(`no xllamacpp in ${tools}: no export is run by llama.cpp`);

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
const LLAMA = `import json, os, sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel = sys.argv[1], 1024, 1
server = xllamacpp.Server(params)
ask = lambda q: server.handle_chat_completions({"messages": [{"role": "user", "content": q}], "temperature": 0, "max_tokens": int(sys.argv[3]), "cache_prompt": False})
loads = lambda one: json.loads(one) if isinstance(one, (str, bytes)) else one
print(json.dumps([loads(ask(q))["choices"][0]["message"]["content"] for q in json.loads(sys.argv[2])]), flush=True)
os._exit(0)`;

/** Greedy continuations are compared for these. */
const QUESTIONS = [
  "What is the capital of France?",
  "Write a haiku about the sea.",
  "List three fruits.",
];
const GREEDY = 40;

const TOOLS = [
  {
    type: "function",
    function: {
      name: "weather",
      description: "The weather of a city",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
] as const;
const call = { name: "weather", arguments: { city: "Zürich" } };
const CALLS: readonly ChatMessage[] = [
  { role: "user", content: "Will it rain in Zürich?" },
  {
    role: "assistant",
    content: "",
    tool_calls: [{ id: "call00001", type: "function", function: call }],
  },
  { role: "tool", content: "rain, 12 °C", tool_call_id: "call00001" },
];

describe.each(MODELS)("%s (needs %s)", (_, variable, parameters) => {
  const name = process.env[variable] ?? "";
  if (name === "") {
    console.warn(`${variable} is not set: the real model is not tested`);
    return it.skip("is not here", () => undefined);
  }
  const isSmol = variable === "PAWL_SMOLLM2";
  /** Two of them in 32 bits take all of a small machine's memory. */
  const isLarge = parameters > 1e9;
  const longest = isLarge ? GREEDY / 4 : GREEDY;
  const folder = mkdtempSync(join(tmpdir(), "pawl-real-"));
  let tokenizer: Tokenizer;
  let engine: Engine;
  let file: string;
  beforeAll(async () => {
    file = (await fetchGguf(name))!;
    const model = await readGgufModel(openGguf(file));
    await writeGgufModel(model, folder);
    tokenizer = model.tokenizer;
    engine = await createEmbeddedEngine({ model: { folder }, seed: 0 });
  }, 1_800_000);
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

  it("has the parameters of its model, tied", async () => {
    const facts = await describeFetched(file);
    expect(facts).toMatchObject({ parameters, unsupported: undefined });
    expect(facts!.config!.tiedEmbeddings).toBe(true);
  });

  it("is the same on the PyTorch server (needs PyTorch)", async (test) => {
    const torch = await findTorchPython(process.env).catch(() => undefined);
    if (torch === undefined) return test.skip("no PyTorch");
    const options = { model: folder, checkpoints: join(folder, "checkpoints"), host: "127.0.0.1" };
    const server = await startTorchServer(
      torch,
      { ...options, port: 0, nproc: 1, threads: 2 },
      { ...process.env, PAWL_API_KEY: "" },
      () => undefined,
    );
    try {
      const remote = await connectRemoteEngine({ url: server.url, environment: {} });
      const ids = tokenizer.encode(tokenizer.chat(DIALOGUE)).slice(0, 200);
      const [ours, theirs] = await Promise.all([
        engine.forward([{ ids }]),
        remote.forward([{ ids }]),
      ]);
      const apart = ours[0]!.logprobs.map((one, i) => Math.abs(one - theirs[0]!.logprobs[i]!));
      console.info(
        `largest difference between the engines: ${Math.max(...apart).toExponential(1)}`,
      );
      expect(Math.max(...apart)).toBeLessThan(1e-3);
      await remote.dispose();
    } finally {
      await server.stop();
    }
  }, 1_800_000);

  it.skipIf(!isSmol)("needs as much memory as docs/recorded/model-info.txt says", async () => {
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
  }, 1_800_000);

  it.skipIf(!parity)(
    "has transformers' ids, log-probabilities and greedy continuations",
    async () => {
      const texts = JSON.parse(
        readFileSync("packages/core/src/text/fixtures/sentences.json", "utf8"),
      ) as string[];
      const dialogue = tokenizer.encode(tokenizer.chat(DIALOGUE)).slice(0, 200);
      expect(dialogue).toHaveLength(200);
      const prompts = QUESTIONS.map(asked);
      const questions = QUESTIONS.map((content) => [{ role: "user", content }]);
      const input = {
        ...{ texts, dialogue: DIALOGUE, ids: dialogue, questions, greedy: longest },
        ...{ calls: CALLS, tools: TOOLS },
      };
      writeFileSync(join(folder, "in.json"), JSON.stringify(input));
      const ran = spawnSync(python, ["tests/real_models.py", folder], {
        encoding: "utf8",
        env: { ...process.env, HF_HUB_OFFLINE: "1" },
      });
      expect(ran.status, ran.stderr).toBe(0);
      const theirs = JSON.parse(readFileSync(join(folder, "out.json"), "utf8")) as {
        texts: number[][];
        dialogue: number[];
        prompts: number[][];
        tools: string;
        logprobs: number[];
        greedy: number[][];
      };
      expect(texts.map((text) => tokenizer.encode(text))).toEqual(theirs.texts);
      expect(dialogue).toEqual(theirs.dialogue.slice(0, 200));
      expect(prompts).toEqual(theirs.prompts);
      const tools = TOOLS.map((tool) => tool.function);
      const rendered = tokenizer.chat(CALLS, { addGenerationPrompt: true, tools });
      expect(rendered).toBe(theirs.tools);
      if (callFormOf(tokenizer.chatTemplate) === "hermes")
        expect(rendered).toContain(
          `<tool_call>\n${JSON.stringify(call).replaceAll(":", ": ").replaceAll(",", ", ")}\n</tool_call>`,
        );
      const [{ logprobs }] = (await engine.forward([{ ids: dialogue }])) as [
        { logprobs: Float32Array },
      ];
      const apart = theirs.logprobs.map((one, i) => Math.abs(one - logprobs[i + 1]!));
      console.info(
        `largest difference of 199 log-probabilities: ${Math.max(...apart).toExponential(1)}`,
      );
      expect(Math.max(...apart)).toBeLessThan(1e-3);
      for (const [i, prompt] of prompts.entries())
        expect(await greedy(prompt, longest), QUESTIONS[i]).toEqual(theirs.greedy[i]);
    },
    1_800_000,
  );

  const exported = async (weights: string, name: string, from = folder): Promise<string> => {
    const out = join(folder, name);
    const to = `gguf-${weights}`;
    const { code, stderr } = await runCli(["export", from, "--to", to, "--out", out]);
    expect([code, stderr]).toEqual([0, ""]);
    return out;
  };

  it.skipIf(isLarge)(
    "is the same model when it is exported as GGUF and read back",
    async () => {
      const ids = tokenizer.encode(tokenizer.chat(DIALOGUE)).slice(0, 200);
      const [{ logprobs }] = (await engine.forward([{ ids }])) as [{ logprobs: Float32Array }];
      for (const [weights, limit] of [
        ["f16", 0.05],
        ["q8_0", 1],
      ] as const) {
        const out = await exported(weights, `${weights}/smollm2.gguf`);
        const model = await readGgufModel(openGguf(out));
        expect(model.tokenizer.encode(model.tokenizer.chat(DIALOGUE)).slice(0, 200)).toEqual(ids);
        const again = join(folder, `again-${weights}`);
        await writeGgufModel(model, again);
        const other = await createEmbeddedEngine({ model: { folder: again }, seed: 0 });
        const [theirs] = (await other.forward([{ ids }])) as [{ logprobs: Float32Array }];
        await other.dispose();
        const apart = ids
          .slice(1)
          .map((_, i) => Math.abs(logprobs[i + 1]! - theirs.logprobs[i + 1]!));
        console.info(`${weights}: log-probabilities differ by at most ${Math.max(...apart)}`);
        expect(Math.max(...apart)).toBeLessThan(limit);
        if (weights === "q8_0") continue;
        // What 16 bits hold is written again as it is.
        const twice = await exported(weights, "twice/smollm2.gguf", again);
        expect(readFileSync(twice).equals(readFileSync(out))).toBe(true);
      }
    },
    600_000,
  );

  it.skipIf(!llama || isLarge)(
    "answers in llama.cpp as it does here",
    async () => {
      const out = await exported("f16", "llama/smollm2.gguf");
      const args = ["-c", LLAMA, out, JSON.stringify(QUESTIONS), String(GREEDY)];
      const ran = spawnSync(tools, args, { encoding: "utf8" });
      expect(ran.status, ran.stderr).toBe(0);
      const answers = JSON.parse(ran.stdout.trim().split("\n").at(-1)!) as string[];
      for (const [i, question] of QUESTIONS.entries()) {
        const ours = tokenizer.decode(await greedy(asked(question), GREEDY));
        expect(answers[i], question).toBe(ours.replace("<|im_end|>", ""));
      }
    },
    600_000,
  );
});
