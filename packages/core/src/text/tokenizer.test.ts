import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { worldTexts } from "../../../../tests/helpers/small-world.js";
import { createTokenizer, loadTokenizer } from "./tokenizer.js";
import { buildTokenizer } from "./tokenizer-builder.js";

const fixtures = join(import.meta.dirname, "fixtures");
const readJson = async (name: string) => JSON.parse(await readFile(join(fixtures, name), "utf8"));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "pawl-tokenizer-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const chatml =
  "{% for m in messages %}<|goal|>{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<|do|>{% endif %}";

/** The files of a small tokenizer with a different configuration. */
function files(config: object) {
  const { tokenizer } = buildTokenizer(worldTexts).files;
  return { tokenizer, config: JSON.stringify(config) };
}

describe("any tokenizer", () => {
  it("knows its size, its special tokens and its end", () => {
    const tokenizer = buildTokenizer(worldTexts);
    expect(tokenizer.endId).toBe(tokenizer.id("<|end|>"));
    expect(tokenizer.padId).toBe(0);
    expect([...tokenizer.specialIds].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(Math.max(...worldTexts.flatMap((text) => tokenizer.encode(text)))).toBe(
      tokenizer.vocabularySize - 1,
    );
  });

  it("knows every token that ends a turn, and keeps the file that names them", async () => {
    const [see, act] = ["<|see|>", "<|do|>"].map((token) => buildTokenizer(worldTexts).id(token)!);
    const named = (eos: unknown, config: object = { eos_token: "<|see|>" }) =>
      createTokenizer({ ...files(config), generation: JSON.stringify({ eos_token_id: eos }) });
    expect(createTokenizer(files({ eos_token: "<|see|>" })).endIds).toEqual([see]);
    expect(named([act, see]).endIds).toEqual([see, act]);
    expect(named(act).endIds).toEqual([see, act]);
    expect(named(null).endIds).toEqual([see]);
    expect(named([act], {}).endIds).toEqual([act]);
    expect(named([act], {}).endId).toBeUndefined();
    expect(() => named([99_999])).toThrow(/generation_config.json: eos_token_id contains 99999/);
    expect(() => named("end")).toThrow(/generation_config.json is not as expected/);
    const kept = join(folder, "ends");
    await named([act]).save(kept);
    expect((await loadTokenizer(kept)).endIds).toEqual([see, act]);
  });

  it("spells its only special token out where the text is plain", () => {
    const special = { id: 3, content: "<e>", special: true, normalized: false };
    const only = createTokenizer({
      tokenizer: JSON.stringify({
        added_tokens: [{ ...special, single_word: false, lstrip: false, rstrip: false }],
        model: { type: "BPE", vocab: { "<": 0, e: 1, ">": 2, "<e>": 3 }, merges: [] },
      }),
    });
    expect(only.encode("e<e>")).toEqual([1, 3]);
    expect(only.encode("e<e>", { plain: true })).toEqual([1, 0, 1, 2]);
  });

  it("reads special tokens, unless the text is plain", () => {
    const tokenizer = buildTokenizer(worldTexts);
    const text = "a <|do|><|do|>, <|see|>";
    const special = (ids: readonly number[]) =>
      ids.filter((id) => tokenizer.specialIds.has(id)).length;
    expect(special(tokenizer.encode(text))).toBe(3);
    const plain = tokenizer.encode(text, { plain: true });
    expect(special(plain)).toBe(0);
    expect(tokenizer.decode(plain)).toBe(text);
  });

  it("decodes no ids to an empty text, and rejects unknown ids", () => {
    const tokenizer = buildTokenizer(worldTexts);
    expect(tokenizer.decode([])).toBe("");
    expect(() => tokenizer.decode([3, 99_999])).toThrow(/Token id 99999 is not in the vocabulary/);
    expect(() => tokenizer.decode([-1])).toThrow(/Token id -1/);
  });

  it("returns ids that callers cannot change", () => {
    const tokenizer = buildTokenizer(worldTexts);
    const ids = tokenizer.encode("look") as number[];
    expect(() => ids.push(1)).toThrow(TypeError);
    expect(tokenizer.encode("look")).toHaveLength(1);
  });

  it("saves the files unchanged and reads them again", async () => {
    const tokenizer = createTokenizer({
      ...files({ eos_token: "<|end|>" }),
      chatTemplate: chatml,
    });
    const copy = join(folder, "copy", "deeper");
    await tokenizer.save(copy);
    const again = await loadTokenizer(copy);
    for (const text of worldTexts) expect(again.encode(text)).toEqual(tokenizer.encode(text));
    expect(again.files).toEqual(tokenizer.files);
    expect(again.hasChatTemplate).toBe(true);
  });
});

describe("chat templates", () => {
  const messages = [
    { role: "system", content: "be brief" },
    { role: "user", content: "look" },
  ] as const;
  const written = "<|goal|>system: be brief<|end|><|goal|>user: look<|end|><|do|>";

  it.each([
    ["a string", chatml],
    [
      "a list of named ones",
      [
        { name: "tools", template: "no" },
        { name: "default", template: chatml },
      ],
    ],
  ])("given as %s are rendered with the named tokens", (_, chat_template) => {
    const tokenizer = createTokenizer(files({ chat_template, eos_token: { content: "<|end|>" } }));
    expect(tokenizer.chat(messages, { addGenerationPrompt: true })).toBe(written);
    expect(tokenizer.chat(messages)).toBe(written.slice(0, -"<|do|>".length));
  });

  it("that are missing, broken or reject messages give an error", () => {
    expect(() => createTokenizer({ tokenizer: "{}" })).toThrow(/tokenizer.json is not as expected/);
    const without = createTokenizer(files({}));
    expect(without.hasChatTemplate).toBe(false);
    expect(() => without.chat(messages)).toThrow(/no chat template.*tokenizer_config.json/);
    const broken = files({ chat_template: "{% for %}" });
    expect(() => createTokenizer(broken)).toThrow(/chat template of memory cannot be parsed/);
    const unwilling = createTokenizer(
      files({ chat_template: "{{ raise_exception('no system role') }}" }),
    );
    expect(() => unwilling.chat(messages)).toThrow(
      /rejected the messages \(roles system, user\): .*no system role/,
    );
  });
});

describe("broken files", () => {
  it("are named, with the problem", async () => {
    const empty = await mkdtemp(join(folder, "empty-"));
    await expect(loadTokenizer(empty)).rejects.toThrow(/no tokenizer.json in .*empty-/);
    await expect(loadTokenizer(join(folder, "nowhere"))).rejects.toThrow(/no tokenizer.json/);
    await writeFile(join(empty, "tokenizer.json"), "version https://git-lfs.github.com/spec/v1");
    await expect(loadTokenizer(empty)).rejects.toThrow(/tokenizer.json is not valid JSON.*LFS/);
    await writeFile(join(empty, "tokenizer.json"), '{"model": 3}');
    await expect(loadTokenizer(empty)).rejects.toThrow(/not as expected[\s\S]*model/);
    const model = { type: "BPE", vocab: { a: 0 }, merges: [] };
    const write = (json: object) => writeFile(join(empty, "tokenizer.json"), JSON.stringify(json));
    await write({ model: { ...model, type: "Riddle" } });
    await expect(loadTokenizer(empty)).rejects.toThrow(/not as expected[\s\S]*model.type/);
    await write({ model, decoder: { type: "Riddle" } });
    await expect(loadTokenizer(empty)).rejects.toThrow(/this library can build: .*Riddle/);
    await write({ model: { ...model, vocab: {} } });
    await expect(loadTokenizer(empty)).rejects.toThrow(/empty vocabulary/);
    const digits = join(empty, "tokenizer.json");
    await writeFile(
      digits,
      JSON.stringify({ model }).replace(/("vocab":\{"[^"]+":)\d+/, "$11e999"),
    );
    await expect(loadTokenizer(empty)).rejects.toThrow(/whole numbers as token ids, got Infinity/);
    await writeFile(join(empty, "tokenizer.json"), files({}).tokenizer);
    await writeFile(join(empty, "tokenizer_config.json"), '{"eos_token": 7}');
    await expect(loadTokenizer(empty)).rejects.toThrow(/tokenizer_config.json is not as expected/);
    await expect(loadTokenizer(join(empty, "tokenizer.json"))).rejects.toThrow(
      /Cannot read .*ENOTDIR/,
    );
  });
});

describe("the ids of the native library", () => {
  it("equal ours for a tokenizer built here", async () => {
    const tokenizer = buildTokenizer(worldTexts);
    const sentences: readonly string[] = await readJson("sentences.json");
    expect(sentences.map((text) => tokenizer.encode(text))).toEqual(
      await readJson("ids-built.json"),
    );
  });

  const qwen = process.env.PAWL_QWEN_TOKENIZER;
  it.skipIf(qwen === undefined)(
    "are ours for Qwen2.5 (needs PAWL_QWEN_TOKENIZER, a folder with its tokenizer.json)",
    async () => {
      const tokenizer = await loadTokenizer(qwen as string);
      const sentences: readonly string[] = await readJson("sentences.json");
      expect(sentences.map((text) => tokenizer.encode(text))).toEqual(
        await readJson("ids-qwen2.5.json"),
      );
      for (const text of sentences) {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text.normalize("NFC"));
      }
      const chat = tokenizer.chat([{ role: "user", content: "look" }], {
        addGenerationPrompt: true,
      });
      expect(chat).toMatch(/<\|im_start\|>user\nlook<\|im_end\|>\n<\|im_start\|>assistant\n$/);
      expect(tokenizer.vocabularySize).toBe(151_665);
    },
  );
});
