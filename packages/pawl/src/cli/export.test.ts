import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { learn, toy } from "@pawl/core/engine/conformance-tools-testing.js";
import { createTokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { inProcess, testModel } from "@pawl/engine-remote/remote/model-testing.js";
import { connectRemoteEngine } from "@pawl/engine-remote/remote/remote-engine.js";
import { startTestServer, type TestServer } from "@pawl/engine-remote/remote/server-testing.js";
import { readGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { openCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { worldTexts } from "../../../../tests/helpers/small-world.js";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-export-"));
const trained = join(parent, "trained");
const kept = join(parent, "server");
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ model: testModel, folder: kept, extensions: true });
  const engine = await inProcess({ ...testModel, valueHead: true });
  await learn(engine, toy, 2);
  await engine.save(trained);
  await engine.dispose();
  await buildTokenizer(worldTexts).save(trained);
});
afterAll(async () => {
  await server.close();
  rmSync(parent, { recursive: true, force: true });
});

const PLAIN = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];

async function sameWeights(folder: string): Promise<void> {
  const [a, b] = await Promise.all([trained, folder].map(openCheckpoint));
  expect(b!.tensors.map(({ name }) => name)).not.toContain("value_head.weight");
  expect(b!.tensors).toHaveLength(a!.tensors.length - 1);
  for (const { name } of b!.tensors) expect(await b!.read(name)).toEqual(await a!.read(name));
}

it("writes weights and tokenizer, without optimiser and critic", async () => {
  const out = join(parent, "out");
  const { code, stdout } = await runCli(["export", trained, "--out", out]);
  expect(code).toBe(0);
  expect(stdout).toContain(`${trained} is now a plain model in ${out}`);
  expect(readdirSync(out).sort()).toEqual(PLAIN);
  await sameWeights(out);
});

it("fetches weights from a server, and leaves nothing behind there", async () => {
  const engine = await connectRemoteEngine({ url: server.url, folder: trained });
  const pointer = join(parent, "pointer");
  await engine.save(pointer);
  await engine.dispose();
  await buildTokenizer(worldTexts).save(pointer);
  const out = join(parent, "fetched");
  const { code, stderr } = await runCli(["export", pointer, "--out", out, "--engine", server.url]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(readdirSync(out).sort()).toEqual(PLAIN);
  await sameWeights(out);
  expect(readdirSync(join(kept, "exports"))).toEqual([]);
  const lost = await runCli(["export", pointer, "--out", join(parent, "lost")]);
  expect(lost.stderr).toMatch(/its weights are on the engine server .*--engine http/);
});

/** One of llama.cpp's rules, with fewer tokens than the model has embeddings. */
const saveWords = (folder: string): Promise<void> => {
  const letters = Array.from("abcdefghijklmnopqrstuvwxyz");
  const plain = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  const json = {
    added_tokens: [{ id: 0, content: "<end>", ...plain, special: true }],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false },
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(["<end>", ...letters, "ab"].map((one, id) => [one, id])),
      merges: [["a", "b"]],
    },
  };
  const config = JSON.stringify({ eos_token: "<end>" });
  return createTokenizer({ tokenizer: JSON.stringify(json), config }).save(folder);
};

it("writes one GGUF file, from here and from a server, with adapters merged", async () => {
  const engine = await inProcess({
    ...testModel,
    lora: { rank: 2, alpha: 8, targets: ["q_proj", "down_proj"] },
  });
  await learn(engine, toy, 2);
  const adapted = join(parent, "adapted");
  await engine.save(adapted);
  await engine.dispose();
  const served = await connectRemoteEngine({ url: server.url, folder: adapted });
  const pointer = join(parent, "served");
  await served.save(pointer);
  await served.dispose();
  for (const folder of [adapted, pointer]) await saveWords(folder);
  const files = [join(parent, "a", "agent.gguf"), join(parent, "b", "agent.gguf")] as const;
  const here = await runCli(["export", adapted, "--to", "gguf-f16", "--out", files[0]]);
  expect(here).toMatchObject({ code: 0, stderr: "" });
  expect(here.stdout).toContain(`${adapted} is now a gguf-f16 model in ${files[0]}`);
  const there = ["export", pointer, "--to", "gguf-f16", "--out", files[1], "--engine", server.url];
  expect(await runCli(there)).toMatchObject({ code: 0, stderr: "" });
  expect(readFileSync(files[1]).equals(readFileSync(files[0]))).toBe(true);
  expect(readdirSync(join(parent, "b"))).toEqual(["agent.gguf"]);

  const checkpoint = await openCheckpoint(adapted);
  const { tensors, tokenizer } = await readGgufModel(openGguf(files[0]));
  const query = "model.layers.1.self_attn.q_proj.weight";
  const read = await tensors.find(({ name }) => name === query)!.read();
  const [merged, base] = [
    await checkpoint.read(query),
    await checkpoint.read(query, { plain: true }),
  ];
  const apart = (from: Float32Array) => Math.max(...read.map((one, i) => Math.abs(one - from[i]!)));
  expect(apart(merged)).toBeLessThan(2 ** -11);
  expect(apart(base)).toBeGreaterThan(2 ** -9);
  expect(tokenizer.encode("cab")).toEqual([3, 27]);
});

it("refuses what llama.cpp could not run, before it is fetched", async () => {
  const args = ["--to", "gguf-q8_0", "--out", join(parent, "none", "own.gguf")];
  const { code, stderr } = await runCli(["export", trained, ...args]);
  expect(stderr).toContain("it was made from an environment's text");
  expect(code).toBeGreaterThan(0);
  const far = await runCli(["export", trained, ...args, "--engine", "http://127.0.0.1:9"]);
  expect(far.stderr).toContain("it was made from an environment's text");
  expect(readdirSync(parent)).not.toContain("none");
});

it.each([
  [[], "pawl export needs a run or a model and an output"],
  [[trained], "pawl export needs a run or a model and an output"],
  [["nowhere", "--out", "x"], "nowhere holds no model"],
  [[trained, "--out", "recipes"], "--out: recipes is not empty; name a new folder"],
  [[trained, "--to", "gguf-f16", "--out", "x"], "--out: expected a file that ends in .gguf, got x"],
  [[trained, "--to", "gguf-f16", "--solved", "--out", "x.gguf"], "--solved: it chooses episodes"],
])("refuses %j", async (args, message) => {
  const { code, stderr } = await runCli(["export", ...args]);
  expect(stderr).toContain(message);
  expect(code).toBeGreaterThan(0);
});
