import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { worldTexts } from "../../tests/helpers/small-world.js";
import { learn, toy } from "../engine/conformance-tools-testing.js";
import { inProcess, testModel } from "../engine/remote/model-testing.js";
import { connectRemoteEngine } from "../engine/remote/remote-engine.js";
import { startTestServer, type TestServer } from "../engine/remote/server-testing.js";
import { openCheckpoint } from "../engine/weights/checkpoint.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
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

it.each([
  [[], "pawl export needs a run or a model and an output"],
  [[trained], "pawl export needs a run or a model and an output"],
  [["nowhere", "--out", "x"], "nowhere holds no model"],
  [[trained, "--out", "recipes"], "--out: recipes is not empty; name a new folder"],
])("refuses %j", async (args, message) => {
  const { code, stderr } = await runCli(["export", ...args]);
  expect(stderr).toContain(message);
  expect(code).toBeGreaterThan(0);
});
