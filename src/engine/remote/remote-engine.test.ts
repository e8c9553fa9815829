/** The client against a real HTTP server of the protocol, with and without our extensions. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { conformanceChecks } from "../conformance.js";
import { clipped, close, scores, toy } from "../conformance-tools.js";
import { createEmbeddedEngine } from "../embedded/embedded-engine.js";
import type { Engine } from "../engine.js";
import { testModel as model, writeTestModel } from "./model-testing.js";
import { connectRemoteEngine } from "./remote-engine.js";
import { startTestServer, type TestServer } from "./server-testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-remote-"));
const start = join(folder, "start");

beforeAll(() => writeTestModel(start));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a remote engine on a server of ours conforms", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ model, folder: join(folder, "ours"), extensions: true });
  });
  afterAll(() => server.close());
  for (const { name, run } of conformanceChecks)
    it(name, async () => {
      await run(() => connectRemoteEngine({ url: server.url }));
      expect(server.counts.get("create_model")).toBeGreaterThan(0);
    });
});

describe("a remote engine on a plain server conforms, as far as such a server goes", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ model, folder: join(folder, "plain"), extensions: false });
  });
  afterAll(() => server.close());
  /** The others drop gradients, ask for entropies, stop at two tokens, or see log-probabilities cut. */
  const plain = /depend on its seed|of the whole|reference stays|saved and loaded/;
  for (const { name, run } of conformanceChecks.filter((check) => plain.test(check.name)))
    it(name, async () => {
      await run(() => connectRemoteEngine({ url: server.url, folder: start }));
      expect(server.counts.get("create_model")).toBeGreaterThan(0);
    });
});

/** A few updates with an objective that has kinks; the weights afterwards, seen through scores. */
async function learnt(engine: Engine) {
  const sequences = toy.map(({ ids }, i) => ({
    ids,
    inputs: {
      old: Array.from({ length: ids.length }, (_, j) => -3.4 - (j % 4) * 0.2),
      advantage: Array.from({ length: ids.length }, (_, j) => (i - 4) * 0.5 + j * 0.01),
      limit: Array.from({ length: ids.length }, () => 0.9),
    },
  }));
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) {
    const { loss, metrics } = await engine.forwardBackward(sequences, clipped);
    losses.push(loss, metrics.ratio!);
    await engine.optimStep({ learningRate: 1e-3 });
  }
  return { losses, after: await scores(engine, Array.from(toy[1]!.ids)) };
}

describe("an objective gives the same update", () => {
  it("fused on a server of ours, in two passes on a plain one, and embedded", async () => {
    const notices: string[] = [];
    const embedded = await createEmbeddedEngine(model);
    const expected = await learnt(embedded);
    await embedded.dispose();
    for (const extensions of [true, false]) {
      const server = await startTestServer({ model, folder: join(folder, "same"), extensions });
      const engine = await connectRemoteEngine({
        url: server.url,
        folder: start,
        onNotice: (message) => notices.push(message),
      });
      expect(engine.capabilities.fusedObjective).toBe(extensions);
      const { losses, after } = await learnt(engine);
      close(losses, expected.losses, 1e-4);
      close(after, expected.after, 1e-4);
      expect(server.counts.get("forward") ?? 0).toBe(extensions ? 1 : 4);
      await engine.dispose();
      await server.close();
    }
    expect(notices).toEqual([expect.stringMatching(/takes no objectives.*second forward/)]);
  });
});
