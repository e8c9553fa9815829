/** Which recipe `pawl train` takes for which model. */
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { readGgufModel, writeGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { tinyModel, writeGguf } from "@pawl/models/gguf/gguf-testing.js";
import { shardCheckpoint } from "@pawl/models/weights/shards-testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-pretrained-"));
const at = (name: string): string => join(parent, name);
beforeAll(async () => {
  const { metadata, tensors } = tinyModel();
  metadata["llama.context_length"] = { u32: 2048 };
  writeGguf(at("chat.gguf"), metadata, tensors);
  await writeGgufModel(await readGgufModel(openGguf(at("chat.gguf"))), at("chat"));
  const { "tokenizer.chat_template": _, ...base } = metadata;
  writeGguf(at("base.gguf"), base, tensors);
});
afterAll(() => rmSync(parent, { recursive: true }));

async function settings(...args: readonly string[]) {
  const { code, stdout, stderr } = await runCli(["train", ...args, "--print-config"]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}
const start = (name: string) => ["--model.start", at(name)];

describe("a pretrained chat model", () => {
  it.each(["chat.gguf", "chat"])("has its own recipe on CPUs: %s", async (name) => {
    expect(await settings(...start(name))).toMatchObject({
      env: { name: "household", rooms: 1 },
      prompt: { style: "chat" },
      engine: { loraRank: 16 },
      warmStart: { episodes: 96, sft: { observationWeight: 0, optimizer: { learningRate: 1e-3 } } },
      ...{ updates: 6, maxTokens: 16, optimizer: { learningRate: 1e-4 }, paw: { loss: "off" } },
      corrections: { episodes: 0 },
    });
  });

  it("trains all weights on a server, with the study's rates", async () => {
    const args = [...start("chat.gguf"), "--engine", "http://127.0.0.1:9"];
    const rates = {
      engine: { loraRank: 0 },
      warmStart: { sft: { optimizer: { learningRate: 2e-4 } } },
      ...{ optimizer: { learningRate: 2e-5 }, paw: { loss: "off" } },
    };
    expect(await settings(...args)).toMatchObject({
      ...rates,
      env: { rooms: 2 },
      ...{ updates: 60, groups: 16, groupSize: 8, stepLimit: 30 },
    });
    expect(await settings(...start("chat.gguf"), "--engine.lora-rank", "0")).toMatchObject({
      ...rates,
      updates: 6,
    });
    expect(await settings(...args, "--env", "webshop")).toMatchObject({
      env: { name: "webshop", observations: "lines" },
      ...{ stepLimit: 10, maxTokens: 64, optimizer: { learningRate: 5e-6 } },
      evaluation: { splits: ["test"] },
    });
  });

  it.each(["desk", "textworld", "search"])("keeps what %s needs", async (env) => {
    const [own, chat] = [
      await settings("--env", env),
      await settings("--env", env, ...start("chat.gguf")),
    ];
    expect(chat.env).toEqual(own.env);
    expect(chat.evaluation.splits).toEqual(own.evaluation.splits);
    expect(chat.warmStart.teacher).toBe(own.warmStart.teacher);
    expect(chat.maxTokens).toBe(2 * own.maxTokens);
  });

  it("has the recipe named in the first lines of its run, and contradictions by name", async () => {
    const out = at("run");
    const { code, stderr } = await runCli([
      ...["train", ...start("chat.gguf"), "--out", out, "--updates", "1", "--groups", "1"],
      ...["--group-size", "2", "--step-limit", "1", "--warm-start.episodes", "0"],
      ...["--evaluation.every", "0", "--max-tokens", "4", "--engine.threads", "1"],
      ...["--paw.loss", "ce", "--optimizer.learning-rate", "0.002"],
    ]);
    expect(code, stderr).toBe(0);
    expect(stderr.split("\n")[0]).toMatch(/settings: recipes\/pretrained\.ts$/);
    expect(stderr).toMatch(
      /trains 0\.0 of 0\.0 million parameters \(adapters\), about 0\.\d of the/,
    );
    expect(stderr).toMatch(/up to [\d,]+ tokens an update: 2 episodes of up to 1 steps/);
    expect(stderr).toMatch(/minutes: 1 × [\d.]+ for updates \(measured now: /);
    expect(stderr).toContain("warning: optimizer.learningRate 0.002:");
    expect(stderr).toContain("warning: paw.loss ce:");
    expect(readManifest(out).recipe).toBe("recipes/pretrained.ts");
    const shown = (await runCli(["show", out])).stdout;
    expect(shown).toContain("groupSize 2 (recipe: 8)");
    expect(shown).not.toContain("prompt.style");
    // A run that started from it keeps such rates, and its own engine.
    expect(await settings("--model.start", out)).toMatchObject({
      ...{ env: { rooms: 1 }, engine: { loraRank: 16 }, optimizer: { learningRate: 1e-4 } },
      ...{ paw: { loss: "off" }, warmStart: { episodes: 0 } },
    });
  });
});

it("--dry-run says what a pretrained model will take", async () => {
  const args = ["train", ...start("chat.gguf"), "--dry-run", "--engine.threads", "1"];
  const { code, stdout, stderr } = await runCli(args);
  expect(code, stderr).toBe(0);
  expect(stdout.trim().split("\n")).toEqual([
    expect.stringMatching(/^pawl train would make 6 updates .*\. Nothing was started\.$/),
    expect.stringMatching(
      /^trains .* million parameters \(adapters\), about .* GB of memory here$/,
    ),
    expect.stringMatching(/^up to [\d,]+ tokens an update: 16 episodes of up to 20 steps$/),
    expect.stringMatching(
      /minutes: imitation .*, 6 × .* for updates, evaluation .* \(measured now/,
    ),
  ]);
  const odd = await runCli([...args, "--prompt.style", "compact", "--paw.loss", "ce"]);
  expect(odd.stdout).toMatch(/^warning: prompt\.style compact: .*\nwarning: paw\.loss ce: /m);
});

it("a model without chat template, and a file, are not taken for one", async () => {
  expect(await settings(...start("base.gguf"))).toMatchObject({
    ...{ prompt: { style: "compact" }, updates: 105 },
  });
  expect(
    await settings("--config", "recipes/textworld-delivery.ts", ...start("chat.gguf")),
  ).toMatchObject({ env: { name: "textworld" }, prompt: { style: "compact" } });
});

describe("a model that cannot be trained is refused with what to do", () => {
  beforeAll(async () => {
    const { metadata, tensors } = tinyModel();
    writeGguf(at("small.gguf"), metadata, tensors);
    writeGguf(at("one-of-3.gguf"), { ...metadata, "split.count": { u32: 3 } }, tensors);
    writeFileSync(at("cut.gguf"), readFileSync(at("chat.gguf")).subarray(0, -1000));
    const copy = (name: string): string => {
      cpSync(at("chat"), at(name), { recursive: true });
      return at(name);
    };
    truncateSync(join(copy("cut"), "model.safetensors"), 3000);
    for (const name of ["cut-part", "mixed-parts"]) await shardCheckpoint(copy(name));
    const [first, second] = [1, 2].map((i) => `model-0000${i}-of-00003.safetensors`);
    truncateSync(join(at("cut-part"), second!), 1000);
    cpSync(join(at("mixed-parts"), second!), join(at("mixed-parts"), first!));
    const edit = (name: string, changes: object): void => {
      const file = join(at(name), "config.json");
      const json = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...json, ...changes }));
    };
    copy("other-config");
    edit("other-config", { hidden_size: 16 });
    copy("huge");
    edit("huge", { hidden_size: 8192, intermediate_size: 28672, num_hidden_layers: 80 });
  });

  it.each([
    [
      "cut.gguf",
      /ends at byte \d+, but the file has \d+; it is truncated .*: fetch or copy it again/,
    ],
    ["one-of-3.gguf", /is one of 3 parts of a model; join them first with .*--merge/],
    ["cut", /model.safetensors: tensor .* if it is truncated, fetch or copy it again/],
    ["cut-part", /-00002-of-.*: tensor .* if it is truncated, fetch or copy it again/],
    ["mixed-parts", /should be in model-00001.*, but is not: fetch or copy all parts again/],
    ["other-config", /do not fit the model in config.json: .*Fetch or copy both again/],
    ["huge", /takes at least [\d.]+ GB of memory, and there are .*: take a smaller model, or/],
    ["base.gguf", /has no chat template: it is a base model. Name .*--prompt.style full/],
    ["small.gguf", /do not fit into the model's context of 64 tokens.*Show less history/],
  ])("%s", async (name, says) => {
    const env = { XDG_CACHE_HOME: parent };
    const chat = name === "base.gguf" ? ["--prompt.style", "chat"] : [];
    const args = ["train", ...start(name), ...chat];
    const out = at(`run-${name}`);
    for (const how of [["--dry-run"], ["--out", out]]) {
      const { code, stdout, stderr } = await runCli([...args, ...how], { env });
      expect([code, stdout], stderr).toEqual([expect.any(Number), ""]);
      expect(code).toBeGreaterThan(0);
      expect(stderr.trim().split("\n").at(-1)).toMatch(says);
    }
    // How long episodes are is known once the model is open.
    expect(existsSync(out)).toBe(name === "small.gguf");
  });
});

describe("--recipe", () => {
  it("takes a recipe of this package by its name", async () => {
    const named = await settings("--recipe", "alfworld-smollm2");
    expect(named).toEqual(await settings("--config", "recipes/alfworld-smollm2.ts"));
    expect(await settings("--recipe=tau-retail", "--groups", "3")).toMatchObject({
      ...{ env: { name: "tau" }, groups: 3 },
    });
  });

  it.each([
    [["--recipe", "alfworld-smollm"], 'Did you mean "alfworld-smollm2"?'],
    [["--recipe", "../package"], 'there is no recipe "../package"'],
    [["--recipe="], "--recipe: expected the name of a recipe"],
    [["--recipe", "pretrained"], "is no recipe by itself"],
    [["--recipe", "quick", "--config", "x.yaml"], "leave one of them out"],
  ])("%j is refused", async (args, message) => {
    const { code, stderr } = await runCli(["train", ...args, "--dry-run"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
