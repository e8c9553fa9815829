import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { readGgufModel, writeGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { tinyModel, writeGguf } from "@pawl/models/gguf/gguf-testing.js";
import { COMMIT, type HubStandIn, startHub } from "@pawl/models/hub/hub-testing.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-model-"));
const gguf = join(parent, "tiny.gguf");
const model = join(parent, "model");
let hub: HubStandIn;
let env: Record<string, string>;

beforeAll(async () => {
  const { metadata, tensors } = tinyModel();
  writeGguf(gguf, metadata, tensors);
  await writeGgufModel(await readGgufModel(openGguf(gguf)), model);
  const files = readdirSync(model).map((name) => [name, readFileSync(join(model, name))]);
  hub = await startHub({ "owner/tiny": Object.fromEntries(files) });
  env = { HF_ENDPOINT: hub.endpoint, HF_HOME: parent, XDG_CACHE_HOME: parent };
});
afterAll(async () => {
  await hub.close();
  rmSync(parent, { recursive: true });
});

const changed = (name: string, change: (model: ReturnType<typeof tinyModel>) => void): string => {
  const file = join(parent, name);
  const { metadata, tensors } = tinyModel();
  change({ metadata, tensors });
  writeGguf(file, metadata, tensors);
  return file;
};

it("training refuses a prompt style that a model's tokenizer cannot write, before anything is played", async () => {
  const played: string[] = [];
  const other = join(parent, "other-tokenizer");
  cpSync(model, other, { recursive: true });
  const file = join(other, "tokenizer.json");
  writeFileSync(file, readFileSync(file, "utf8").replaceAll("<|see|>", "<|look|>"));
  const config = tinyConfig({ model: { start: other } });
  const onActivity = ({ what }: { readonly what: string }) => void played.push(what);
  const run = trainRun(config, { folder: join(parent, "style"), onActivity });
  await expect(run).rejects.toThrow(/style compact .*Use --prompt\.style full or chat/);
  expect(played).toEqual([]);
});

describe("pawl model info", () => {
  it("describes a GGUF file without converting it", async () => {
    const { code, stdout } = await runCli(["model", "info", gguf], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/architecture +llama \(GGUF\)/);
    expect(stdout).toMatch(/weights +\d+ MB \(F32\)/);
    expect(stdout).toMatch(/shape +2 layers of width 8, 2 heads \(1 for keys and values\) of 4/);
    expect(stdout).toMatch(/context +64 tokens/);
    expect(stdout).toMatch(
      /chat +has a chat template without tools; the prompt explains them \(json\)/,
    );
    expect(stdout).toMatch(/to sample +about \d+ MB \(16 texts of 1,024 tokens\)/);
    expect(stdout).toMatch(/embedded +supported/);
    expect(readdirSync(parent)).not.toContain("pawl");
  });

  it("describes a model of the hub without its weights", async () => {
    const { code, stdout } = await runCli(["model", "info", "owner/tiny"], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`from +owner/tiny on the hub, commit ${COMMIT}`));
    expect(stdout).toMatch(/architecture +LlamaForCausalLM/);
    expect(
      hub.asked.some(({ url }) => url.includes("resolve") && url.includes("safetensors")),
    ).toBe(false);
  });

  it("says what is not supported, and why", async () => {
    const file = changed("other.gguf", ({ metadata }) => {
      metadata["general.architecture"] = { string: "mamba" };
    });
    const { code, stdout } = await runCli(["model", "info", file], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/embedded +not supported: .*architecture "mamba" is not supported/);
    expect(stdout).toMatch(/server +through transformers, if/);
  });

  it("knows tool calls, presets, and models that are not there", async () => {
    const file = changed("tools.gguf", ({ metadata }) => {
      metadata["tokenizer.chat_template"] = {
        string: "{% if tools %}<tool_call>{% endif %}{{ messages[0].content }}",
      };
    });
    const tools = await runCli(["model", "info", file], { env });
    expect(tools.stdout).toMatch(/tool calls as in hermes/);
    const preset = await runCli(["model", "info", "tiny"], { env });
    expect(preset.stdout).toMatch(/parameters +0\.6 million with a vocabulary of 512/);
    const none = await runCli(["model", "info", "owner/none"], { env });
    expect(none).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no model owner/none"),
    });
    const folder = await runCli(["model", "info", "packages/nowhere"], { env });
    expect(folder.stderr).toMatch(/packages\/nowhere holds no model: expected a run folder/);
    const nothing = await runCli(["model", "info"], { env });
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining("needs a model") });
    const served = await runCli(["model", "info", "served"], { env });
    expect(served.stderr).toMatch(/the embedded engine has no model of its own/);
  });
});

describe("pawl model pull", () => {
  it("prints the folder of the cache", async () => {
    const { code, stdout, stderr } = await runCli(["model", "pull", "owner/tiny@v1"], { env });
    expect(code).toBe(0);
    expect(stdout.trim()).toBe(join(parent, "hub", "models--owner--tiny", "snapshots", COMMIT));
    expect(stderr).toContain(`owner/tiny@v1 is here, commit ${COMMIT}`);
    expect((await loadTokenizer(stdout.trim())).hasChatTemplate).toBe(true);
    const local = await runCli(["model", "pull", model], { env });
    expect(local).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is not a model of the hub"),
    });
  });
});

describe("pawl model convert", () => {
  it("writes the same model from a file, the hub and a folder", async () => {
    for (const [i, name] of [gguf, "owner/tiny", model].entries()) {
      const out = join(parent, `out-${i}`);
      const { code, stderr } = await runCli(["model", "convert", name, "--out", out], { env });
      expect(code, stderr).toBe(0);
      for (const file of ["model.safetensors", "tokenizer.json"])
        expect(readFileSync(join(out, file)).equals(readFileSync(join(model, file))), file).toBe(
          true,
        );
    }
    const again = await runCli(["model", "convert", gguf, "--out", model], { env });
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("is not empty") });
    const nowhere = await runCli(["model", "convert", gguf], { env });
    expect(nowhere.stderr).toMatch(/needs an output folder/);
  });
});

describe("pawl model chat", () => {
  const chat = (args: readonly string[], input: string) =>
    runCli(["model", "chat", ...args, "--max-tokens", "6"], { env, input });

  it("answers every line of a pipe, the same for the same seed", async () => {
    const once = await chat([gguf, "--seed", "3"], "hello\n\nand now?\n");
    expect(once.code).toBe(0);
    expect(once.stdout).toMatch(/^> hello\n[\s\S]*> and now\?\n/);
    expect((await chat([model, "--seed", "3"], "hello\n\nand now?\n")).stdout).toBe(once.stdout);
    expect((await chat([model, "--seed", "4"], "hello\n\nand now?\n")).stdout).not.toBe(
      once.stdout,
    );
  });

  it("continues plain text if asked to, or if there is no template", async () => {
    const file = changed("base.gguf", ({ metadata }) => {
      delete metadata["tokenizer.chat_template"];
    });
    const base = await chat([file, "--temperature", "0"], "a mug is\n");
    expect(base.stderr).toContain("has no chat template: it continues the text");
    const plain = await chat([gguf, "--temperature", "0", "--plain"], "a mug is\n");
    expect(plain.stdout).toBe(base.stdout);
    const system = await chat([file, "--system", "Be brief."], "a mug is\n");
    expect(system).toMatchObject({ code: 2, stderr: expect.stringContaining("no system prompt") });
  });

  it("says so if the template throws or the text is too long", async () => {
    const file = changed("throws.gguf", ({ metadata }) => {
      metadata["tokenizer.chat_template"] = {
        string: "{{ raise_exception('roles must alternate') }}",
      };
    });
    const thrown = await chat([file], "hello\n");
    expect(thrown.code).toBe(1);
    expect(thrown.stderr).toMatch(/The chat template of .* rejected .*roles must alternate/);
    const long = await chat([gguf], `${"a mug ".repeat(80)}\n`);
    expect(long.stderr).toMatch(/the text has \d+ tokens, but the model's context has only 64/);
  });
});
